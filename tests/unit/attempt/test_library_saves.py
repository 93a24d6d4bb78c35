"""Checkpoints of the library, as a worker takes them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostler.attempt.folder_watch import FolderWatch
from hostler.attempt.rest import Clocks
from hostler.attempt.saver import Saver, Target
from hostler.errors import StoreUnreachable
from hostler.records.checkpoint import checkpoints, parts, saved_folder
from hostler.records.checkpoint.saved_folder import Mark
from hostler.sdk.checkpoint.checkpointer import Checkpointer
from hostler.sdk.checkpoint.policy import SavePolicy
from hostler.spec.job import Checkpointing
from hostler.store.memory import MemoryStore

RUN = "0000000-r"


class Counting(MemoryStore):
    """Counts what is written, and fails when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.written: list[str] = []
        self.fails: Callable[[str], bool] = lambda key: False

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        if self.fails(key):
            raise StoreUnreachable("away")
        self.written.append(key.rpartition("/checkpoints/")[2])
        return super().put(key, data, if_absent=if_absent)

    def upload(self, path: Path, key: str) -> None:
        self.put(key, path.read_bytes())


class Scene:
    def __init__(self, folder: Path) -> None:
        self.store, self.folder = Counting(), folder
        self.folder.mkdir(parents=True, exist_ok=True)
        self.now, self.said = 1000.0, list[str]()
        self.checkpointer = Checkpointer(folder, policy=SavePolicy(every_steps=1), say=self.said.append)
        self.saver = self.new_saver()

    def new_saver(self, attempt: int = 5) -> Saver:
        watch = FolderWatch(
            self.folder,
            Clocks(self.clock, self.clock, lambda seconds: None),
            settle=2.0,
            steady=lambda: True,
            say=self.said.append,
        )
        target = Target(
            self.store,
            RUN,
            attempt,
            covered=lambda record: {"position": record.get("points")},
            guard=lambda: None,
        )
        return Saver(target, watch, Checkpointing(every=300.0), say=self.said.append, clock=self.clock)

    def clock(self) -> float:
        return self.now

    def save(self, step: int, **more: Any) -> None:
        self.checkpointer.save(step, {"n": step}, wait=True, **more)

    def commits(self) -> int:
        return len(checkpoints.committed(self.store, RUN))

    def restored(self, target: Path) -> Path:
        assert checkpoints.restore_newest(self.store, RUN, target, before=99)
        return target


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path / "run" / "checkpoint")


def test_a_whole_one_is_taken_at_once_and_comes_back(scene: Scene, tmp_path: Path) -> None:
    scene.save(7)
    scene.saver.tick()
    assert scene.commits() == 1
    found = Checkpointer(scene.restored(tmp_path / "next"), policy=SavePolicy(), say=print).restore()
    assert found and found.step == 7 and found.state == {"n": 7}


def test_checkpoint_covers_the_points_logged_when_it_was_made(scene: Scene) -> None:
    scene.save(7, points=12)
    scene.saver.tick()
    place = checkpoints.committed(scene.store, RUN)[0]
    assert checkpoints.read(scene.store, RUN, place).position == 12


def test_only_the_newest_is_taken_and_each_once(scene: Scene, tmp_path: Path) -> None:
    scene.save(1)
    scene.save(2)
    scene.saver.tick()
    scene.saver.tick()
    assert scene.commits() == 1
    assert saved_folder.committed(scene.restored(tmp_path / "next")) == [Mark(2)]


def test_one_that_is_being_written_is_left_alone(scene: Scene, tmp_path: Path) -> None:
    scene.save(1)
    half = scene.folder / Mark(2).name
    half.mkdir()
    (half / "tensors-0000.safetensors").write_bytes(b"half")
    scene.saver.tick()
    assert [path.name for path in scene.restored(tmp_path / "next").iterdir()] == [Mark(1).name]
    assert scene.saver.final(trusted=False) is None, "nothing new is whole"


def test_nothing_is_copied(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    linked: list[int] = []
    save = checkpoints.save

    def look(store: Any, run: str, place: Any, folder: Path, *rest: Any, **more: Any) -> Any:
        linked.extend(path.stat().st_nlink for path in folder.rglob("*") if path.is_file())
        return save(store, run, place, folder, *rest, **more)

    monkeypatch.setattr(checkpoints, "save", look)
    scene.save(1)
    scene.saver.tick()
    assert linked == [2, 2, 2]


def test_a_killed_process_loses_none_that_was_whole(scene: Scene, tmp_path: Path) -> None:
    scene.save(1)
    (scene.folder / "notes").write_text("being written")
    os.utime(scene.folder / "notes", (scene.now, scene.now))
    made = scene.saver.final(trusted=False)
    assert made and [path.name for path in scene.restored(tmp_path / "next").iterdir()] == [Mark(1).name]
    assert "not saved" in scene.said[0]


def test_scripts_own_files_go_with_it_once_at_rest(scene: Scene, tmp_path: Path) -> None:
    scene.save(1)
    (scene.folder / "notes").write_text("mine")
    os.utime(scene.folder / "notes", (scene.now, scene.now))
    scene.saver.tick()
    assert [path.name for path in scene.restored(tmp_path / "next").iterdir()] == [Mark(1).name]
    scene.now += 3
    scene.saver.tick()
    found = scene.restored(tmp_path / "next")
    assert (found / "notes").read_text() == "mine" and saved_folder.committed(found) == [Mark(1)]


def test_a_damaged_one_is_not_taken_and_said_once(scene: Scene) -> None:
    scene.save(1)
    os.truncate(scene.folder / Mark(1).name / "state-0000.json", 5)
    scene.saver.tick()
    scene.saver.tick()
    assert scene.commits() == 0 and len(scene.said) == 1
    assert "state-0000.json has 5 bytes of" in scene.said[0]


def test_the_best_one_beside_it_is_taken_too(scene: Scene, tmp_path: Path) -> None:
    best = Checkpointer(scene.folder / "best" / "accuracy", policy=SavePolicy(), say=print)
    best.save(3, {}, wait=True)
    scene.save(4)
    scene.saver.tick()
    found = scene.restored(tmp_path / "next")
    assert saved_folder.committed(found / "best" / "accuracy") == [Mark(3)]


def test_an_upload_that_broke_off_goes_on_where_it_was(
    scene: Scene, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(parts, "PART", 1000)
    scene.save(1)
    scene.store.fails = lambda key: key.endswith("files/000006")
    assert scene.saver.try_tick() and scene.commits() == 0 and "will try again" in scene.said[0]
    scene.store.fails = lambda key: False
    before = set(scene.store.written)
    scene.now += 1
    scene.saver.tick()
    assert scene.commits() == 1 and len(before) >= 6
    assert len(scene.store.written) == len(set(scene.store.written)), "nothing was sent twice"
    found = Checkpointer(scene.restored(tmp_path / "next"), policy=SavePolicy(), say=print).restore()
    assert found and found.step == 1


def test_what_was_restored_is_not_sent_again(scene: Scene) -> None:
    scene.save(1)
    saver = scene.new_saver(6)
    saver.tick()
    assert scene.commits() == 0


def test_an_uploader_rests_as_long_as_it_worked(scene: Scene) -> None:
    scene.save(1)
    put = scene.store.put

    def slow(key: str, data: bytes, *, if_absent: bool = False) -> bool:
        scene.now += 5
        return put(key, data, if_absent=if_absent)

    scene.store.put = slow  # type: ignore[method-assign]
    scene.saver.tick()
    scene.save(2)
    scene.saver.tick()
    assert scene.commits() == 1
    scene.now += 100
    scene.saver.tick()
    assert scene.commits() == 2


def test_a_store_that_the_training_overtakes_is_said_once(scene: Scene) -> None:
    put, steps = scene.store.put, iter(range(2, 99))

    def slow(key: str, data: bytes, *, if_absent: bool = False) -> bool:
        scene.now += 5
        if key.endswith("COMMIT"):
            scene.save(next(steps))
        return put(key, data, if_absent=if_absent)

    scene.save(1)
    scene.store.put = slow  # type: ignore[method-assign]
    for _ in range(3):
        scene.saver.tick()
        scene.now += 1000
    assert scene.commits() >= 2
    [said] = [line for line in scene.said if "the store took" in line]
    assert "the next was made meanwhile" in said and "the training goes on" in said
