"""The folder of a killed script by hand: which files of it are brought to the store, and as what."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from hostler.attempt import script_saver
from hostler.attempt.delivery import Delivery
from hostler.attempt.status import AttemptStatus
from hostler.attempt.uploader import Uploader
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim
from hostler.records.run.handoff import Handoff
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series.metrics import MetricWriter
from hostler.sdk.checkpoint.checkpointer import Checkpointer
from hostler.sdk.checkpoint.policy import SavePolicy
from hostler.settings import Timing
from hostler.spec.job import Checkpointing
from hostler.store.memory import MemoryStore

KEY, TIMING = RunKey("s", "0000000-r"), Timing()


class Scene:
    """An attempt by hand, its folder, and what its store has."""

    def __init__(self, root: Path) -> None:
        self.store, self.folder, self.said = MemoryStore(), Handoff(root), list[str]()
        self.folder.make({})
        attempt = claim(self.store, RunLog(self.store, KEY), 60.0, lambda: 0.0, Claim("a"))
        assert attempt is not None
        writer = MetricWriter(self.store, KEY.run, attempt.number)
        uploader = Uploader(self.folder.metrics, writer, TIMING, time.monotonic, time.time)
        status = AttemptStatus(attempt, TIMING, time.monotonic, self.said.append)
        self.delivery = Delivery(self.store, attempt, self.folder, uploader, status, attempt.state)

    def write(self, text: str, age: float = 100.0) -> None:
        path = self.folder.checkpoint / "model"
        path.write_text(text)
        os.utime(path, (time.time() - age, time.time() - age))

    def tick(self) -> None:
        """One look of the living process at its folder."""
        policy = Checkpointing(every=1e6)  # it is never time to save
        script_saver.living(self.delivery, policy, TIMING, steady=lambda: True, say=self.said.append).tick()

    def deliver(self) -> list[int]:
        """Numbers of checkpoints, once the next start has delivered what is left."""
        script_saver.left_behind(self.delivery, TIMING, say=self.said.append).final(trusted=False)
        return [place.step for place in checkpoints.committed(self.store, KEY.run)]


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_files_never_seen_at_rest_are_left_out(scene: Scene) -> None:
    scene.write("half")
    assert scene.deliver() == [] and "may have changed when the process died" in scene.said[-1]


def test_files_seen_at_rest_are_delivered_once(scene: Scene) -> None:
    scene.write("whole")
    scene.tick()
    assert scene.deliver() == [1]
    assert scene.deliver() == [1], "the store has them"


def test_files_written_after_their_rest_are_delivered_as_they_rested(scene: Scene, tmp_path: Path) -> None:
    scene.write("whole")
    scene.tick()
    scene.write("half", age=50.0)
    assert scene.deliver() == [1]
    assert checkpoints.restore_newest(scene.store, KEY.run, tmp_path / "restored", before=9)
    assert (tmp_path / "restored" / "model").read_text() == "whole"


def test_young_files_are_not_at_rest(scene: Scene) -> None:
    scene.write("young", age=1.0)
    scene.tick()
    assert scene.deliver() == []


def test_library_checkpoint_is_delivered_without_the_doubtful_files(scene: Scene, tmp_path: Path) -> None:
    Checkpointer(scene.folder.checkpoint, policy=SavePolicy(every_steps=1), say=print).save(
        7, {"n": 7}, wait=True
    )
    scene.write("half", age=0.0)
    assert scene.deliver() == [1]
    target = tmp_path / "restored"
    assert checkpoints.restore_newest(scene.store, KEY.run, target, before=9)
    assert [path.name for path in target.iterdir()] == ["step-000000000007"]


def test_damaged_library_checkpoint_is_not_uploaded(scene: Scene) -> None:
    Checkpointer(scene.folder.checkpoint, policy=SavePolicy(every_steps=1), say=print).save(
        7, {"n": 7}, wait=True
    )
    state = scene.folder.checkpoint / "step-000000000007" / "state-0000.json"
    state.write_bytes(state.read_bytes()[:-1] + b"?")
    assert scene.deliver() == [] and "is not what was written" in scene.said[-1]


def test_numbers_of_an_earlier_version_are_counted_on(scene: Scene) -> None:
    """It numbered by `step * 100 + again`."""
    old = scene.folder.checkpoint.with_name("old")
    old.mkdir()
    (old / "model").write_text("older")
    checkpoints.save(scene.store, KEY.run, Place(1, 700), old, dict, lambda: None)
    scene.write("newer")
    scene.tick()
    assert scene.deliver() == [701, 700]
