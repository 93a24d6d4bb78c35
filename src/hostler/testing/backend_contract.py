"""A pytest suite that every backend passes: subclass it and give it `backend`, `fleet` and `launch`.

`launch` names a store in which little or nothing is left to do, so that workers leave by themselves.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from dataclasses import replace

from hostler.backends.base import Backend, Launch, Question
from hostler.spec.project import Fleet

PATIENCE = 60.0  # seconds


class BackendContract:
    """`hosts`: on how many machines the fleet's `workers` are counted each.

    `chooses`: the engine itself chooses the machines, so that none has a name beforehand.
    """

    hosts = 1
    chooses = False

    def test_a_plan_is_pure_and_names_the_store(self, backend: Backend, fleet: Fleet, launch: Launch) -> None:
        first, second = backend.plan(fleet, launch), backend.plan(fleet, launch)
        assert first == second
        assert shlex.quote(launch.store) in first.text
        assert list(backend.list(fleet)) == []

    def test_a_plan_has_as_many_workers_as_the_fleet(
        self, backend: Backend, fleet: Fleet, launch: Launch
    ) -> None:
        assert backend.plan(fleet, launch).workers == fleet.workers * self.hosts

    def test_started_workers_are_listed_and_heard_until_they_leave(
        self, backend: Backend, fleet: Fleet, launch: Launch
    ) -> None:
        [worker, *_] = started = backend.start(backend.plan(fleet, launch))
        assert all(worker_info.alive for worker_info in started)
        assert sum(worker_info.count for worker_info in started) == fleet.workers * self.hosts
        ids = tuple(worker_info.id for worker_info in started)
        assert all(worker_info.id.startswith(ids) for worker_info in backend.list(fleet))
        printed = list[bytes]()  # it may go with the machine

        def gone() -> bool:
            printed.append(backend.logs(worker))
            return not alive(backend, fleet)

        wait_until(gone)
        assert any(b"no run is left" in text for text in [*printed, backend.logs(worker)])

    def test_stop_is_idempotent_and_leaves_nothing(
        self, backend: Backend, fleet: Fleet, launch: Launch
    ) -> None:
        backend.start(backend.plan(fleet, launch))
        backend.stop(fleet)
        backend.stop(fleet)
        wait_until(lambda: not backend.list(fleet))
        assert list(backend.stop(fleet)) == []

    def test_hosts_that_have_their_workers_are_left_alone(
        self, backend: Backend, fleet: Fleet, launch: Launch
    ) -> None:
        if self.chooses:
            planned = backend.plan(fleet, replace(launch, skip=frozenset({"any"})))
            assert planned.workers == fleet.workers
            return
        [first, *_] = backend.start(backend.plan(fleet, launch))
        planned = backend.plan(fleet, replace(launch, skip=frozenset({first.host})))
        assert planned.workers == fleet.workers * (self.hosts - 1)
        wait_until(lambda: not alive(backend, fleet))

    def test_machines_say_what_they_are(self, backend: Backend, fleet: Fleet, launch: Launch) -> None:
        machines = backend.survey(fleet, Question())
        unknown = self.chooses and not backend.capabilities.makes_machines
        assert len(machines) == (0 if unknown else self.hosts)
        assert all(machine.python.startswith("3.") and not machine.problem for machine in machines)


def alive(backend: Backend, fleet: Fleet) -> bool:
    """Whether any worker is there; one that has ended may stay in the list for its log."""
    return any(worker.alive for worker in backend.list(fleet))


def wait_until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < deadline, "the condition did not come true in time"
        time.sleep(0.05)
