"""One attempt on its way to the store: the order of its last writes, and how long the store is waited for."""

from __future__ import annotations

from pathlib import Path

import pytest

from hostler.attempt.delivery import Delivery
from hostler.attempt.folder_watch import FolderWatch
from hostler.attempt.heartbeat import Heartbeat
from hostler.attempt.rest import Clocks
from hostler.attempt.saver import Saver, Target
from hostler.attempt.status import AttemptStatus
from hostler.attempt.uploader import Uploader
from hostler.errors import Fenced, StoreUnreachable
from hostler.records.run import control, heartbeats
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim, Outcome
from hostler.records.run.handoff import Handoff
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series import metrics
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.points import Point, pack
from hostler.settings import Timing
from hostler.spec.job import Checkpointing
from hostler.store.memory import MemoryStore

KEY = RunKey("s", "0000000-r")
TIMING = Timing(wait_min=0.0, wait_max=0.0, grace=5.0)


class Recording(MemoryStore):
    """Remembers the keys that were written, and refuses some."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []
        self.away = False

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        if self.away:
            raise StoreUnreachable("away")
        self.written.append(key)
        return super().put(key, data, if_absent=if_absent)


class Scene:
    def __init__(self, root: Path, patience: float | None = None, attempts: int = 1) -> None:
        self.store, self.folder, self.now = Recording(), Handoff(root), 0.0
        self.folder.make({})
        self.said: list[str] = []
        for _ in range(attempts):
            attempt = claim(self.store, RunLog(self.store, KEY).read_on(), 60.0, self.clock, Claim("a"))
        assert attempt is not None
        writer = MetricWriter(self.store, KEY.run, attempt.number)
        uploader = Uploader(self.folder.metrics, writer, TIMING, self.clock, self.clock)
        self.status = AttemptStatus(attempt, TIMING, self.clock, self.say, ("leaving",), patience)
        self.delivery = Delivery(self.store, attempt, self.folder, uploader, self.status, attempt.state)
        watch = FolderWatch(
            self.folder.checkpoint,
            Clocks(self.clock, self.clock),
            settle=2.0,
            steady=lambda: True,
            say=self.said.append,
        )
        target = Target(
            self.store,
            KEY.run,
            attempt.number,
            covered=lambda record: uploader.covered(),
            guard=self.status.guard,
        )
        self.delivery.saver = Saver(target, watch, Checkpointing(), say=self.said.append, clock=self.clock)
        (self.folder.checkpoint / "model").write_text("m")
        (self.folder.output / "table").write_text("t")
        self.folder.metrics.write_bytes(pack([Point(3, 1.0, {"loss": 0.5})]))

    def clock(self) -> float:
        return self.now

    def say(self, line: str) -> None:
        self.said.append(line)
        self.now += 1.0

    def rank(self, part: str) -> int:
        """When the first key with this part was written."""
        return next(n for n, key in enumerate(self.store.written) if part in key)


@pytest.mark.parametrize("done", [True, False])
def test_outputs_of_a_finished_run_go_before_its_checkpoint(tmp_path: Path, done: bool) -> None:
    scene = Scene(tmp_path)
    scene.delivery.keep(trusted=True, done=done)
    assert (scene.rank("/outputs/") < scene.rank("/checkpoints/")) == done


def test_end_comes_last_with_all_points_before_it(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.delivery.uploader.flush()
    scene.delivery.keep(trusted=True, done=True)
    scene.delivery.close(scene.delivery.filled(Outcome("done", exit=0), 7.0))
    assert "/ends/" in scene.store.written[-1] and "/log/" in scene.store.written[-2]
    end = control.state_of(scene.store, KEY).end
    assert end is not None and (end["seconds"], end["step"], end["attempts"]) == (7.0, 3, 1)
    assert end["metrics"]["loss"]["last"] == 0.5 and len(metrics.read(scene.store, KEY.run, 1)) == 1


@pytest.mark.parametrize(("attempts", "lists"), [(1, False), (2, True)])
def test_checkpoints_are_listed_from_the_second_attempt_on(
    tmp_path: Path, attempts: int, lists: bool
) -> None:
    scene, listed = Scene(tmp_path, attempts=attempts), list[str]()
    scene.store.before = lambda operation, key: listed.append(key) if operation == "list" else None
    assert scene.delivery.restore(scene.said.append) is None
    assert bool(listed) == lists


def test_a_script_waits_for_its_store_only_so_long(tmp_path: Path) -> None:
    scene = Scene(tmp_path, patience=3.0)
    scene.store.away = True
    with pytest.raises(StoreUnreachable):
        scene.delivery.close(Outcome("done"))
    assert scene.now == 3.0


def test_a_worker_told_to_go_gives_up_after_the_grace(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.store.away = True
    scene.delivery.stop("leaving")
    with pytest.raises(Fenced):
        scene.delivery.close(Outcome("done"))
    assert scene.now == TIMING.grace and scene.status.gave_up


def test_heartbeat_tells_progress_and_brings_a_stop(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    scene.delivery.uploader.tick()
    heart = Heartbeat(scene.store, "a", TIMING, {"by_hand": True}, scene.clock)
    heart.hold(scene.delivery)
    control.pause(scene.store, KEY)
    heart.beat()
    seen = heartbeats.read(scene.store, "a")
    assert seen is not None and seen["runs"][KEY.run] == {"attempt": 1, "step": 3, "metrics": {"loss": 0.5}}
    assert scene.status.stop == "pause" and not scene.status.fenced
    control.kill(scene.store, KEY)
    heart.beat()
    assert scene.status.fenced
    heart.silence()
    assert heartbeats.read(scene.store, "a") is None


def test_a_worker_that_has_to_go_keeps_small_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hostler.attempt.delivery.HURRY", 100)
    scene = Scene(tmp_path)
    scene.delivery.before = {}
    for name, size in (("small", 90), ("large", 200)):
        scene.folder.work.mkdir(exist_ok=True)
        (scene.folder.work / name).write_text("x" * size)
    scene.delivery.stop("leaving")
    scene.delivery.keep(trusted=True)
    left = scene.delivery.left["outputs"]
    assert left["files"] == 2  # and the table of the output folder
    assert left["unkept"] == [
        "not kept: large (1 file, 200 B) could not be sent before the worker had to leave"
    ]


def test_outputs_already_sent_are_not_sent_again_after_an_error(tmp_path: Path) -> None:
    scene = Scene(tmp_path)
    uploads: list[str] = []

    def refuse_once(operation: str, key: str) -> None:
        if operation == "upload":
            uploads.append(key)
            if len(uploads) == 2:
                raise StoreUnreachable("away")

    (scene.folder.output / "second").write_text("s")
    scene.store.before = refuse_once
    scene.delivery.keep(trusted=True, done=True)
    names = [key for key in uploads if "/outputs/" in key]
    assert len(names) == 3 and names[1] == names[2] != names[0]
