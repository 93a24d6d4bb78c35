"""Following a run that nobody works on ends."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from hostler.backends.base import Capabilities, Launch, Plan, WorkerInfo
from hostler.cli.terminal.liveness import QUIET, Liveness
from hostler.errors import MachineError
from hostler.records.run import heartbeats
from hostler.records.run.log import RunKey
from hostler.records.run.state import RunState
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.spec.project import Fleet
from hostler.spec.states import RUNNING
from hostler.store.memory import MemoryStore

KEY = RunKey("s", "0000000-s-abc")
OURS = WorkerInfo("1", "here", True)


class Engine:
    """A backend whose workers are as the test says."""

    capabilities = Capabilities(restarts=True)

    def __init__(self, living: Sequence[WorkerInfo]) -> None:
        self.living = living

    def plan(self, fleet: Fleet, launch: Launch) -> Plan:
        return Plan(fleet, ())

    def start(self, plan: Plan) -> Sequence[WorkerInfo]:
        return ()

    def list(self, fleet: Fleet) -> Sequence[WorkerInfo]:
        return self.living

    def stop(self, fleet: Fleet, *, now: bool = False) -> Sequence[WorkerInfo]:
        return ()

    def logs(self, worker: WorkerInfo) -> bytes:
        return b"first line\n\nlast words\n"


def liveness(store: MemoryStore, living: Sequence[WorkerInfo] = ()) -> Liveness:
    sweeps.submit(store, Job(name=KEY.sweep, command=("python", "train.py")))
    return Liveness(store, KEY, Engine(living), Fleet("here", "local"), [OURS])


def test_nobody_is_missed_before_some_silence() -> None:
    watch = liveness(MemoryStore())
    assert watch.look(RunState(), False, 0.0) == ""
    assert watch.look(RunState(), False, QUIET - 0.1) == ""
    said = watch.look(RunState(), False, QUIET)
    assert "nobody works on s" in said and "| last words" in said and "hostler worker memory:" in said


def test_script_by_hand_is_not_offered_a_worker() -> None:
    store = MemoryStore()
    sweeps.submit(store, Job(name=KEY.sweep, command=("python", "my train.py"), by_hand=True))
    watch = Liveness(store, KEY)
    watch.look(RunState(), False, 0.0)
    said = watch.look(RunState(), False, QUIET)
    assert "  → python 'my train.py'\n" in said and "hostler worker" not in said


def test_news_begin_the_silence_anew() -> None:
    watch = liveness(MemoryStore())
    watch.look(RunState(), False, 0.0)
    assert watch.look(RunState(), True, QUIET) == ""
    assert watch.look(RunState(head=1), False, 2 * QUIET) == ""
    assert watch.look(RunState(head=1), False, 3 * QUIET) != ""


def test_a_worker_of_ours_that_lives_is_waited_for() -> None:
    watch = liveness(MemoryStore(), [OURS])
    watch.look(RunState(), False, 0.0)
    assert all(watch.look(RunState(), False, n * QUIET) == "" for n in range(1, 9))


def test_another_fleets_living_worker_is_not_ours() -> None:
    watch = liveness(MemoryStore(), [WorkerInfo("2", "here", True)])
    watch.look(RunState(), False, 0.0)
    assert watch.look(RunState(), False, QUIET) != ""


def test_queued_task_is_waited_for_with_one_reason(
    capsys: pytest.CaptureFixture[str],
) -> None:
    task = WorkerInfo("1_[0%1]", "", True, "waits: its partition is down (PartitionDown)", launch="1")
    watch = liveness(MemoryStore(), [task])
    watch.look(RunState(), False, 0.0)
    assert all(watch.look(RunState(), False, n * 10 * QUIET) == "" for n in range(1, 9))
    assert capsys.readouterr().err == "hostler: its worker waits: its partition is down (PartitionDown)\n"


def test_worker_queued_before_is_waited_for() -> None:
    watch = liveness(MemoryStore(), [WorkerInfo("7_[0]", "", True, sweeps=("other", "s"))])
    watch.look(RunState(), False, 0.0)
    assert watch.look(RunState(), False, QUIET) == ""


def test_an_engine_that_does_not_answer_has_ended_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(self: Engine, fleet: Fleet) -> Sequence[WorkerInfo]:
        raise MachineError("squeue failed")

    monkeypatch.setattr(Engine, "list", fails)
    watch = liveness(MemoryStore())
    watch.look(RunState(), False, 0.0)
    assert watch.look(RunState(), False, QUIET) == ""


def test_a_fresh_heartbeat_on_any_machine_is_waited_for() -> None:
    store = MemoryStore()
    heartbeats.beat(store, "far", 1, {"only": ["other"]})
    held = RunState(state=RUNNING, session="far")
    watch = liveness(store)
    watch.look(held, False, 0.0)
    assert watch.look(held, False, QUIET) == ""
    assert watch.look(RunState(), False, 2 * QUIET) != ""  # queued, and that worker serves another sweep
