"""Whatever breaks inside a worker, no claim is left with one that does nothing for it."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from killer import TIMES, often

from hostler.errors import StoreUnreachable
from hostler.records import layout
from hostler.records.body import encode
from hostler.records.run import log
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import RunState, fold
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.store.memory import MemoryStore
from hostler.worker.claim import room
from hostler.worker.loop import Worker, WorkerTerms
from hostler.worker.machine import Machine

pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
TIMING = replace(Timing(), **{**TIMES, "beat": 0.1})
LONG = 30.0  # seconds between two looks: every run here is one of a moment


class Trouble(MemoryStore):
    """Raises once at the first write whose key holds `where`, before or after it is stored."""

    def __init__(self, where: str, error: Exception, *, times: int = 1, after: bool = False) -> None:
        super().__init__()
        self.where, self.error, self.times, self.after = where, error, times, after

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        hit = self.times > 0 and self.where in key
        self.times -= hit
        if hit and not self.after:
            raise self.error
        done = super().put(key, data, if_absent=if_absent)
        if hit:
            raise self.error
        return done


def job(name: str = "job", **more: Any) -> Job:
    code = "import os; open(os.environ['HOSTLER_CHECKPOINT_DIR'] + '/x', 'w').write('x'); print('{\"a\": 1}')"
    return Job(**{"name": name, "command": (sys.executable, "-c", code), **often(retries=2), **more})


@pytest.fixture(autouse=True)
def machine_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "machine"))
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))


def work(store: MemoryStore, tmp_path: Path, said: list[str] | None = None, poll: float = TIMING.poll) -> int:
    said = [] if said is None else said
    here = Machine(store, tmp_path / "cache", "session", replace(TIMING, poll=poll), say=said.append)
    return Worker(here, room.Room(room.offer(slots=1, cpus=1, gpus=None)), WorkerTerms()).run()


def state(store: MemoryStore, one: Job) -> RunState:
    return fold(entries(store, one))


def entries(store: MemoryStore, one: Job) -> list[dict[str, Any]]:
    return RunLog(store, RunKey(one.name, one.run_id(0))).read_on().entries


@pytest.mark.parametrize("where", ["/checkpoints/", "/logs/", "/metrics/", "surroundings/"])
@pytest.mark.parametrize("error", [ValueError("odd"), OSError(28, "No space left on device")])
def test_unexpected_error_gives_the_run_back_for_another_try(
    tmp_path: Path, where: str, error: Exception
) -> None:
    store, one = Trouble(where, error), job()
    sweeps.submit(store, one)
    assert work(store, tmp_path, poll=LONG) == 0
    assert state(store, one).state == "done" and store.times == 0
    assert [e.get("why") for e in entries(store, one)] == [None, "worker", None, None]
    assert list((tmp_path / "cache" / "runs").iterdir()) == []


@pytest.mark.parametrize(("where", "poll"), [("surroundings/", LONG), ("/env/", 0.01)])
def test_repeated_unexpected_error_fails_the_run_with_its_cause(
    tmp_path: Path, where: str, poll: float
) -> None:
    store, one = Trouble(where, ValueError("odd"), times=1000), job(command=("sleep", "0.5"))
    sweeps.submit(store, one)
    assert work(store, tmp_path, poll=poll) == 0
    failure = entries(store, one)[-1]["failure"]
    assert (state(store, one).state, state(store, one).attempts) == ("failed", 3)
    assert failure["message"].startswith("ValueError: odd") and "Traceback" in failure["traceback"]


def test_claim_with_a_lost_answer_is_resumed_by_its_worker(tmp_path: Path) -> None:
    store, one = Trouble("/log/", StoreUnreachable("no answer"), after=True), job()
    sweeps.submit(store, one)
    assert work(store, tmp_path) == 0
    assert state(store, one).state == "done"
    assert [e["kind"] for e in entries(store, one)] == [log.CLAIM, log.CLAIM, log.END]


def test_an_end_whose_answer_was_lost_is_still_its_own(tmp_path: Path) -> None:
    store, one = Trouble("-000002.json", StoreUnreachable("no answer"), after=True), job()
    sweeps.submit(store, one)
    said: list[str] = []
    assert work(store, tmp_path, said) == 0
    assert [e["kind"] for e in entries(store, one)] == [log.CLAIM, log.END]
    assert any(line.endswith(": done") for line in said), said
    assert len(list(store.list(layout.ends(one.name)))) == 1


def test_unreadable_sweep_is_left_alone_and_the_others_are_done(tmp_path: Path) -> None:
    store, one = MemoryStore(), job("readable")
    sweeps.submit(store, one)
    store.put(layout.spec("damaged", 1), b"not a record")
    store.put(layout.spec("newer", 1), encode({"name": "newer"}).replace(b'"format":1', b'"format":99'))
    store.put(layout.halt("headless", 2), encode({"why": "lifted"}))
    said: list[str] = []
    assert work(store, tmp_path, said) == 0
    assert state(store, one).state == "done"
    assert sum("is left alone" in line for line in said) == 3, said


def test_a_worker_whose_heartbeat_broke_does_not_go_on(tmp_path: Path) -> None:
    class Late(MemoryStore):
        beats = 0

        def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
            self.beats += key.startswith(layout.ALIVE)
            if self.beats > 5:
                raise ValueError("odd")
            return super().put(key, data, if_absent=if_absent)

    store, one = Late(), replace(job(), command=("sleep", "1000"))
    sweeps.submit(store, one)
    with pytest.raises(RuntimeError, match="heartbeat"):
        work(store, tmp_path)


def test_run_whose_checkpoints_cannot_be_saved_is_given_back(tmp_path: Path) -> None:
    """The thread that saves broke while the process runs on: it must not run on unsaved."""
    code = (
        "import os, time; open(os.environ['HOSTLER_CHECKPOINT_DIR'] + '/x', 'w').write('x');"
        "time.sleep(1000 if os.environ['HOSTLER_ATTEMPT'] == '1' else 0)"
    )
    store = Trouble("/COMMIT", ValueError("odd"))
    one = replace(job(), command=(sys.executable, "-c", code))
    sweeps.submit(store, one)
    assert work(store, tmp_path) == 0
    assert [e.get("why") for e in entries(store, one)] == [None, "worker", None, None]
