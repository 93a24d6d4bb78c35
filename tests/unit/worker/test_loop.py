"""The worker's loop, where its parts move at the wrong moment."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hostler.records import project
from hostler.records.run.attempt import Attempt
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.store.memory import MemoryStore
from hostler.worker.claim.claimer import Taken
from hostler.worker.claim.room import Room
from hostler.worker.claim.slots import Offer, Placement
from hostler.worker.held_runs import HeldRuns
from hostler.worker.loop import CONCLUDING, Worker, WorkerTerms
from hostler.worker.machine import Machine


class Ending:
    """An execution that ends right after it was looked at."""

    attempt: Attempt = SimpleNamespace(key=RunKey("s", "0000000-s-1"))  # type: ignore[assignment]
    placement, outcome, refused, cost = Placement(), "done", False, 0.0

    def __init__(self) -> None:
        self.looks = 0

    @property
    def vacant(self) -> bool:
        self.looks += 1
        return False

    def is_alive(self) -> bool:
        self.looks += 1
        return self.looks <= 1


def test_run_that_ends_during_a_look_is_reaped_next_time(tmp_path: Path) -> None:
    store, said = MemoryStore(), list[str]()
    project.ensure(store, "test", Timing())
    machine = Machine(store, tmp_path, "session", Timing(), say=said.append)
    worker, one = Worker(machine, Room(Offer(cpus=1, memory=1)), WorkerTerms()), Ending()
    running: list[Any] = worker._runs.running
    running.append(one)
    worker._room.take(one.placement)
    worker._reap()
    assert running == [one] and not worker._room.empty
    worker._reap()
    assert running == [] and worker._room.empty and said == ["0000000-s-1: done"]


def test_looks_that_take_long_are_rare_until_a_place_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, now, looks = MemoryStore(), [0.0], list[float]()
    project.ensure(store, "test", Timing())
    machine = Machine(store, tmp_path, "session", Timing(), say=lambda line: None, clock=lambda: now[0])
    worker, one = Worker(machine, Room(Offer(cpus=2, memory=1)), WorkerTerms()), Ending()

    def slowly(self: Worker) -> None:
        looks.append(now[0])
        now[0] += 0.5

    monkeypatch.setattr(Worker, "_look", slowly)

    def at(moment: float) -> None:
        now[0] = moment
        worker._look_unless_resting()

    at(0.0)
    at(1.0)
    assert looks == [0.0, 1.0], "nothing runs here: nobody is disturbed"
    running: list[Any] = worker._runs.running
    running.append(one)
    worker._room.take(one.placement)
    at(2.0)
    at(5.9)
    assert looks[2:] == []
    at(6.0)
    assert looks[2:] == [6.0]
    one.looks = 2
    worker._reap()
    running.append(Ending())
    at(7.0)
    assert looks[3:] == [7.0], "a place is free"


class Concluding(Ending):
    """An execution whose process is gone and whose end is being written."""

    vacant = True  # type: ignore[assignment]

    def is_alive(self) -> bool:
        return True


@pytest.mark.parametrize("ending", [1, CONCLUDING - 1, CONCLUDING])
def test_next_run_is_claimed_while_few_others_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: int
) -> None:
    store, started = MemoryStore(), list[str]()
    project.ensure(store, "test", Timing())
    job = Job(name="s", command=("x",), runs=({}, {}))
    sweeps.submit(store, job)
    machine = Machine(store, tmp_path, "session", Timing(), say=lambda line: None)
    worker = Worker(machine, Room(Offer(cpus=1, memory=1 << 40)), WorkerTerms())

    def begin(self: HeldRuns, taken: Taken, placement: object) -> None:
        started.append(taken.attempt.key.run)

    monkeypatch.setattr(HeldRuns, "begin", begin)
    running: list[Any] = worker._runs.running
    for execution in [Concluding() for _ in range(ending)]:
        running.append(execution)
        worker._room.take(execution.placement)
        worker._reap()
    worker._look()
    assert started == ([] if ending == CONCLUDING else [job.run_id(0)])
    assert len(running) == ending, "none is over"
