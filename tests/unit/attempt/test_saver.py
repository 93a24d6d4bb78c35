"""The saver with clocks of its own: when a folder is saved, and when it is not."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostler.attempt.folder import copy_file
from hostler.attempt.folder_watch import FolderWatch
from hostler.attempt.rest import Clocks
from hostler.attempt.saver import NotWhole, Saver, Target
from hostler.errors import Fenced, StoreUnreachable
from hostler.records import layout
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.saved_folder import Mark
from hostler.records.checkpoint.tree import scan
from hostler.spec.job import Checkpointing
from hostler.store.memory import MemoryStore
from hostler.worker.gang.checkpoint import Collector


class Scene:
    def __init__(
        self, folder: Path, *, fenced: bool = False, others: Collector | None = None, **policy: Any
    ) -> None:
        self.store = MemoryStore()
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        self.now, self.said = 1000.0, list[str]()
        self.fenced, self.steady = fenced, True
        self.covered: Callable[[], dict[str, Any]] = lambda: {"position": 3}
        target = Target(
            self.store, "0000000-r", 5, covered=lambda record: self.covered(), guard=self.guard, others=others
        )
        self.watch = FolderWatch(
            folder,
            Clocks(lambda: self.now, lambda: self.now, lambda seconds: None),
            settle=2.0,
            steady=lambda: self.steady,
            say=self.said.append,
        )
        checkpointing = Checkpointing(**{"every": 60.0, **policy})
        self.saver = Saver(target, self.watch, checkpointing, say=self.said.append, clock=lambda: self.now)

    def guard(self) -> None:
        if self.fenced:
            raise Fenced("taken")

    def write(self, name: str, text: str, *, at: float | None = None) -> None:
        (self.folder / name).write_text(text)
        when = self.now if at is None else at
        os.utime(self.folder / name, (when, when))

    def steps(self) -> list[int]:
        return [place.step for place in checkpoints.committed(self.store, "0000000-r")]

    def tick(self, now: float) -> list[int]:
        self.now = now
        self.saver.tick()
        return self.steps()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "checkpoint"


def test_tick_saves_new_settled_files_and_not_before_its_time(folder: Path) -> None:
    scene = Scene(folder)
    assert scene.tick(1070.0) == [], "nothing there"
    scene.write("a", "1", at=1069.0)
    assert scene.tick(1070.5) == [], "too young"
    assert scene.tick(1071.0) == [1]
    scene.write("a", "2", at=1072.0)
    assert scene.tick(1130.0) == [1], "not its time"
    assert scene.tick(1131.0) == [2, 1]
    assert scene.tick(1300.0) == [2, 1], "nothing new"


def test_late_write_of_a_failed_save_is_gone_at_the_end(folder: Path) -> None:
    """The store carries it out after its client gave up, and after a later save was thinned out."""

    def refuse(operation: str, key: str) -> None:
        if operation == "put":
            raise StoreUnreachable("no answer")

    scene = Scene(folder)
    scene.saver.target = replace(scene.saver.target, attempt=1)
    scene.write("a", "1", at=1069.0)
    scene.store.before, scene.now = refuse, 1071.0
    assert scene.saver.try_tick() and scene.steps() == []
    scene.store.before = None
    scene.write("b", "2", at=1080.0)
    assert scene.tick(1140.0) == [2]
    scene.store.put(layout.checkpoint_file("0000000-r", 1, 1, 0), b"1")
    assert scene.saver.final(trusted=True) is None
    assert list(scene.store.list(layout.checkpoint("0000000-r", 1, 1))) == [] and scene.steps() == [2]


def test_what_was_restored_is_not_saved_again(folder: Path) -> None:
    folder.mkdir()
    (folder / "a").write_text("restored")
    scene = Scene(folder)
    assert scene.tick(5000.0) == []
    assert scene.saver.final(trusted=True) is None and scene.saver.commits == 0


def test_file_written_during_its_copy_is_not_taken(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scene = Scene(folder)
    scene.write("a", "1")

    def meanwhile(*given: Any) -> bool:
        done = copy_file(*given)
        scene.write("a", "23", at=1100.0)
        return done

    monkeypatch.setattr("hostler.attempt.folder.copy_file", meanwhile)
    assert scene.tick(1100.0) == []
    monkeypatch.undo()
    assert scene.tick(1103.0) == [1]


@pytest.mark.parametrize(
    ("age", "trusted", "saved"), [(0, True, 1), (1, False, 0), (3, False, 1), (3, True, 1)]
)
def test_young_files_count_only_if_the_process_left_by_itself(
    folder: Path, age: float, trusted: bool, saved: int
) -> None:
    scene = Scene(folder)
    scene.write("a", "1")
    scene.tick(scene.now + age)  # a look at it while the process ran
    scene.saver.final(trusted=trusted)
    assert len(scene.steps()) == saved and bool(scene.said) == (not saved)


def test_a_finished_run_says_so_though_nothing_is_new(folder: Path) -> None:
    folder.mkdir()
    (folder / "a").write_text("restored")
    scene = Scene(folder)
    made = scene.saver.final(trusted=True, finished={"summary": {"x": 1}})
    assert made and made.finished and made.record["result"] == {"summary": {"x": 1}} and made.position == 3


def test_metrics_are_brought_into_the_store_before_commit(folder: Path) -> None:
    scene = Scene(folder)
    scene.write("a", "1")
    seen: list[list[int]] = []
    scene.covered = lambda: {"position": len(seen), "n": seen.append(scene.steps())}
    scene.tick(1100.0)
    assert seen == [[]] and scene.steps() == [1]


def test_a_fenced_attempt_commits_nothing(folder: Path) -> None:
    scene = Scene(folder, fenced=True)
    scene.write("a", "1")
    with pytest.raises(Fenced):
        scene.tick(1100.0)
    assert scene.steps() == []


def test_retention_keeps_two_and_what_is_marked(folder: Path) -> None:
    scene = Scene(folder, keep=2, keep_every=150.0)
    for n in range(1, 7):
        scene.write("a", str(n), at=1000.0 + 61 * n - 10)
        scene.tick(1000.0 + 61 * n)
    kept = [
        place.step
        for place in checkpoints.committed(scene.store, "0000000-r")
        if checkpoints.read(scene.store, "0000000-r", place).record.get("kept")
    ]
    assert kept == [6, 3] and scene.steps() == [6, 5, 3]


def test_checkpoints_that_could_not_be_deleted_go_later(folder: Path) -> None:
    def refuse(operation: str, key: str) -> None:
        if operation == "delete":
            raise StoreUnreachable("no answer")

    scene = Scene(folder, keep=1)
    scene.write("a", "1", at=1051.0)
    assert scene.tick(1061.0) == [1]
    scene.store.before = refuse
    scene.write("a", "2", at=1112.0)
    scene.now = 1122.0
    assert scene.saver.try_tick() and scene.steps() == [2, 1]
    with pytest.raises(StoreUnreachable):  # whoever delivers asks again
        scene.saver.final(trusted=True)
    scene.store.before = None
    assert scene.saver.final(trusted=True) is None
    assert scene.steps() == [2]


def test_failing_deletions_hold_up_no_save_and_are_said_once(folder: Path) -> None:
    deletions: list[float] = []

    def refuse(operation: str, key: str) -> None:
        if operation == "delete":
            deletions.append(scene.now)
            raise StoreUnreachable("no answer")

    scene = Scene(folder, keep=1)
    scene.write("a", "1", at=1051.0)
    scene.tick(1061.0)
    scene.store.before = refuse
    scene.write("a", "2", at=1112.0)
    for now in range(1122, 1182):
        scene.now = float(now)
        assert scene.saver.try_tick()
    assert deletions == [1122.0, 1137.0, 1152.0, 1167.0]
    assert scene.said == ["replaced checkpoints not deleted, will try again: no answer"]
    scene.write("a", "3", at=1179.0)
    assert scene.tick(1182.0) == [3, 2, 1], "sixty seconds after the last save"
    scene.store.before = None
    assert scene.tick(1197.0) == [3]


def test_moved_is_when_the_folder_last_changed(folder: Path) -> None:
    scene = Scene(folder)
    scene.write("a", "1")
    scene.tick(1010.0)
    scene.tick(1020.0)
    assert scene.saver.moved == 1010.0


def test_inside_links_stay_links_and_outside_links_become_files(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("o")
    folder.mkdir()
    (folder / "epoch3").write_text("3")
    (folder / "last").symlink_to("epoch3")
    (folder / "out").symlink_to(tmp_path / "outside")
    (folder / "away").symlink_to(tmp_path)
    for row in scan(folder).rows:
        assert copy_file(folder, folder / row.name, tmp_path / "copy" / row.name, row)
    found = {row.name: row.link for row in scan(tmp_path / "copy").rows}
    assert found == {"epoch3": "", "last": "epoch3", "out": ""}


def test_rest_of_a_stopped_process_begins_when_it_continues(folder: Path) -> None:
    scene = Scene(folder)
    scene.write("a", "1")
    scene.steady = False
    assert scene.tick(1100.0) == []
    scene.steady = True
    assert scene.tick(1101.0) == []
    assert scene.tick(1102.0) == [1]


def test_hurried_save_skips_its_interval_but_waits_for_rest(folder: Path) -> None:
    scene = Scene(folder)
    assert scene.saver.hurry() is None, "nothing there"
    scene.write("a", "1", at=1001.0)
    assert scene.saver.hurry() == 1001.0
    assert scene.tick(1002.0) == [], "too young"
    assert scene.tick(1003.0) == [1]
    assert scene.saver.hurry() is None, "all of it is saved"
    scene.write("a", "2", at=1004.0)
    assert scene.tick(1010.0) == [1], "the hurry is over"


class Absent(Collector):
    """Another node has files of every checkpoint, and never brings them."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        super().__init__(MemoryStore(), "0000000-r", 5, 2, 1, lambda missing: None)
        self.meanwhile = meanwhile

    def shared(self, staging: Path) -> Mark | None:
        return Mark(3)

    def collect(self, place: Any, check: Callable[[], None] = lambda: None) -> Any:
        self.meanwhile()
        check()
        raise NotWhole("nodes [1] ended without saving their parts")


def test_run_ends_though_a_part_of_its_checkpoint_never_comes(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "c", others=Absent())
    scene.write("a.pt", "x")
    scene.saver.stop()
    assert scene.saver.final(trusted=True, finished={"summary": {}}) is None
    assert scene.said == [
        "the last checkpoint was not saved, the one before it counts: "
        "nodes [1] ended without saving their parts"
    ]
    assert scene.steps() == []


def test_ending_the_attempt_does_not_wait_for_other_nodes_parts(tmp_path: Path) -> None:
    scene = Scene(tmp_path / "c", others=Absent(lambda: scene.saver.stop()))
    scene.write("a.pt", "x")
    scene.now += 100
    assert scene.saver.try_tick()
    assert scene.said == ["checkpoint not saved, will try again: the process ended first"]


@pytest.mark.parametrize(("attempt", "lists"), [(1, 0), (5, 1)])
def test_only_first_save_of_first_attempt_looks_for_nothing_older(
    folder: Path, monkeypatch: pytest.MonkeyPatch, attempt: int, lists: int
) -> None:
    scene, asked = Scene(folder), list[str]()
    scene.saver.target = replace(scene.saver.target, attempt=attempt)
    listed = scene.store.list
    monkeypatch.setattr(scene.store, "list", lambda prefix: asked.append(prefix) or listed(prefix))
    scene.write("a", "1", at=1000.0)
    assert scene.saver.final(trusted=True) is not None and len(asked) == lists
    scene.write("a", "22", at=1001.0)
    assert scene.saver.final(trusted=True) is not None and len(asked) == lists + 1
