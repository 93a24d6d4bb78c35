"""The folder of a dead worker's attempt: what the next worker on the machine delivers of it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

import pytest

from hostler import proctable
from hostler.records.checkpoint import checkpoints
from hostler.records.run import handoff
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim, Lost
from hostler.records.run.handoff import Handoff
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series import metrics
from hostler.records.series.logs import LogReader, LogWriter
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec.job import Job, Source
from hostler.store.memory import MemoryStore
from hostler.worker.machine import Machine
from hostler.worker.run import dead_attempt, leftovers, run_folders
from hostler.worker.run.dead_attempt import overlap
from interleaving import Killed
from worker_world import FAST

LINES = [f'{{"step": {n}, "loss": {n}.5}}\n' for n in range(1, 5)]
PRINTED = "begins\n" + "".join(LINES)


@pytest.fixture(scope="module")
def dead() -> tuple[int, str]:
    """Number and start of a process that is gone."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        start = proctable.start_of(process.pid)
        process.communicate(b"\n")
    return process.pid, start


class Left:
    """A worker's claim, and the folder of its attempt, after both worker and script were killed."""

    def __init__(self, root: Path, dead: tuple[int, str], secrets: tuple[str, ...] = ()) -> None:
        self.store, self.cache, self.said = MemoryStore(), root / "cache", list[str]()
        self.job = Job(name="job", command=("train",), source=Source(snapshot="0" * 64), secrets=secrets)
        assert sweeps.submit(self.store, self.job)
        self.key = RunKey("job", self.job.run_id(0))
        self.claim("dead")
        run_folders.begin(self.cache, "dead", self.store.url)
        owner = {"pid": dead[0], "start": dead[1], "place": asdict(leftovers.here()), "store": self.store.url}
        handoff.write(run_folders.note_of(self.cache, "dead"), owner)
        self.folder = Handoff(run_folders.of_run(self.cache, "dead", self.key.run, 1))
        self.folder.make({})
        self.folder.log.write_text(PRINTED)
        for n in (1, 2):
            path = self.folder.checkpoint / f"checkpoint-{n}.pt"
            path.write_text(str(n))
            os.utime(path, (time.time() - 200 + n, time.time() - 200 + n))
        facts = {"sweep": "job", "run": self.key.run, "attempt": 1, "session": "dead"}
        handoff.write(self.folder.attempt, {**facts, "pid": dead[0], "start": dead[1]})

    def claim(self, session: str, after: Lost | None = None) -> None:
        run_log = RunLog(self.store, self.key).read_on()
        assert claim(self.store, run_log, 3.0, time.monotonic, Claim(session, after))

    def deliver(self, store_url: str | None = None) -> list[str]:
        machine = Machine(self.store, self.cache, "next", FAST, say=self.said.append)
        url = self.store.url if store_url is None else store_url
        return run_folders.remove_abandoned(
            self.cache, url, lambda folder: dead_attempt.deliver(machine, folder)
        )

    def log(self) -> str:
        return b"".join(piece.data for piece in LogReader(self.store, self.key.run).read()).decode()

    def points(self) -> list[tuple[int, float]]:
        points = metrics.read(self.store, self.key.run, 1)
        return [(point.step, value) for point in points for value in point.values.values()]

    def saved(self) -> dict[str, str]:
        target = self.cache / "restored"
        checkpoints.restore_newest(self.store, self.key.run, target, before=10)
        return {path.name: path.read_text() for path in target.glob("*")}

    def check(self) -> None:
        assert self.log() == PRINTED
        assert self.points() == [(n, n + 0.5) for n in range(1, 5)]
        assert self.saved() == {"checkpoint-1.pt": "1", "checkpoint-2.pt": "2"}
        newest = checkpoints.committed(self.store, self.key.run)[0]
        record = checkpoints.read(self.store, self.key.run, newest).record
        assert record["position"] == record["metric_step"] == 4, "it covers all that was printed"


@pytest.fixture
def left(tmp_path: Path, dead: tuple[int, str]) -> Left:
    return Left(tmp_path, dead)


def test_dead_attempt_is_delivered_and_its_folder_removed(left: Left) -> None:
    assert left.deliver() == ["dead"]
    left.check()
    assert list((left.cache / "runs").iterdir()) == []
    assert RunLog(left.store, left.key).read_on().head == 1, "whoever claims next answers for it"


def test_deliverer_killed_at_any_request_loses_and_repeats_nothing(
    tmp_path: Path, dead: tuple[int, str]
) -> None:
    for request in range(1000):
        (tmp_path / str(request)).mkdir()
        left, count = Left(tmp_path / str(request), dead), 0

        def before(operation: str, key: str, request: int = request) -> None:
            nonlocal count
            count += 1
            if count > request:
                raise Killed

        left.store.before = before
        try:
            left.deliver()
        except Killed:
            left.store.before = None
            left.deliver()
            left.check()
        else:
            assert request > 10
            return


def test_output_and_points_in_the_store_are_not_sent_again(left: Left) -> None:
    """The dead worker had sent some of it, with a line of its own in the middle of one."""
    begun = PRINTED.index("2.5")
    log = LogWriter(left.store, left.key.run, 1)
    log.write(PRINTED[:10].encode())
    log.write(b"[hostler] its own\n" + PRINTED[10:begun].encode())
    log.write(b"[hostler] two lines\nof its own\n")
    writer = MetricWriter(left.store, left.key.run, 1)
    writer.write([Point(0, 1.0, {"system/cpu": 50.0}), Point(1, 1.0, {"loss": 1.5})])
    left.deliver()
    own = "[hostler] its own\n", "[hostler] two lines\nof its own\n"
    assert left.log() == PRINTED[:10] + own[0] + PRINTED[10:begun] + own[1] + PRINTED[begun:]
    assert left.points() == [(0, 50.0), (1, 1.5), (2, 2.5), (3, 3.5), (4, 4.5)]


def test_attempt_with_a_successor_delivers_nothing(left: Left) -> None:
    left.claim("other", Lost(1, False))
    before = [entry.key for entry in left.store.list("")]
    assert left.deliver() == ["dead"]
    assert [entry.key for entry in left.store.list("")] == before


def test_successor_that_claims_meanwhile_fences_the_checkpoint(left: Left) -> None:
    def before(operation: str, key: str) -> None:
        if operation == "put" and "/metrics/" in f"/{key}":
            left.store.before = None
            left.claim("other", Lost(1, False))

    left.store.before = before
    assert left.deliver() == ["dead"]
    assert checkpoints.committed(left.store, left.key.run) == []


def test_output_is_left_out_without_the_secrets_of_its_run(
    tmp_path: Path, dead: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TOKEN", raising=False)
    left = Left(tmp_path, dead, secrets=("TOKEN",))
    left.folder.log.write_text("hunter2hunter2\n" + PRINTED)
    left.deliver()
    assert left.log() == "" and len(left.points()) == 4 and left.saved()


def test_secrets_are_hidden_in_what_a_dead_attempt_printed(
    tmp_path: Path, dead: tuple[int, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "hunter2hunter2")
    left = Left(tmp_path, dead, secrets=("TOKEN",))
    left.folder.log.write_text("hunter2hunter2\n" + PRINTED)
    LogWriter(left.store, left.key.run, 1).write(b"***\nbegi")
    left.deliver()
    assert left.log() == "***\n" + PRINTED


def test_file_that_was_not_at_rest_is_not_delivered(left: Left) -> None:
    (left.folder.checkpoint / "model.pt").write_text("hal")
    now = time.time()
    os.utime(left.folder.log, (now, now))
    left.deliver()
    assert "model.pt" not in left.saved()
    assert "model.pt is not saved: it may have changed when the process died" in left.log()


def test_unreachable_store_leaves_the_folder_for_the_next(left: Left) -> None:
    from hostler.errors import StoreError

    def before(operation: str, key: str) -> None:
        raise StoreError("no answer")

    left.store.before = before
    assert left.deliver() == [] and "could not be delivered" in left.said[-1]
    left.store.before = None
    assert left.deliver() == ["dead"]
    left.check()


def test_folder_of_another_store_waits_for_a_day(left: Left) -> None:
    assert left.deliver("memory:other") == [] and left.folder.folder.is_dir()
    day = time.time() + run_folders.WAITS + 60
    assert run_folders.remove_abandoned(left.cache, "memory:other", now=lambda: day) == ["dead"]


def test_folder_of_a_store_that_is_gone_is_removed(left: Left) -> None:
    note = run_folders.note_of(left.cache, "dead")
    handoff.write(note, {**(handoff.read(note) or {}), "store": str(left.cache / "gone")})
    assert left.deliver() == ["dead"] and left.log() == ""


@pytest.mark.parametrize(
    "stored, output, expected",
    [
        ("", "abc", 0),
        ("ab", "abc", 2),
        ("a[hostler] x\nb", "abc", 2),
        ("[hostler] x\n[hostler] y\nab", "abc", 2),
        ("[hostler] x\nmore of it\nab", "abc", 2),
        ("a[hostler] mine\nb", "a[hostler] mine\nbc", 17),
        ("[[hostler] x\n1]", "[1]\n", 3),
        ("ax", "abc", None),
        ("abcd", "abc", None),
    ],
)
def test_overlap_is_what_the_store_holds_of_an_output(stored: str, output: str, expected: int | None) -> None:
    assert overlap(stored.encode(), output.encode()) == expected
