"""Which states of a checkpoint folder are saved, and which are not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hostler.attempt import folder_watch
from hostler.attempt.folder_watch import FolderWatch
from hostler.attempt.rest import Clocks
from hostler.attempt.saver import Saver, Target
from hostler.records.checkpoint import checkpoints
from hostler.spec.job import Checkpointing
from hostler.store.memory import MemoryStore

SETTLE = 2.0


class Desk:
    """A folder, a saver over it, and a clock that only this test moves."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.now, self.steady = folder, 1_000_000.0, True
        self.said: list[str] = []
        self.meanwhile: Callable[[], None] = lambda: None
        folder.mkdir()
        self.store = MemoryStore()
        watch = FolderWatch(
            folder,
            Clocks(lambda: self.now, lambda: self.now, lambda seconds: self.meanwhile()),
            settle=SETTLE,
            steady=lambda: self.steady,
            say=self.said.append,
        )
        target = Target(self.store, "r", 1, covered=lambda record: {}, guard=lambda: None)
        policy = Checkpointing(every=0.0, keep=2)
        self.saver = Saver(target, watch, policy, say=self.said.append, clock=lambda: self.now)

    def write(self, text: str) -> None:
        path = self.folder / "model"
        path.write_text(text)
        os.utime(path, (self.now, self.now))

    def saved(self) -> list[str]:
        """The newest file in the store."""
        target = self.folder.with_name("restored")
        found = checkpoints.restore_newest(self.store, "r", target, before=10)
        return [(target / "model").read_text()] if found else []


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path / "checkpoint")


def test_a_folder_that_has_come_to_rest_is_saved(desk: Desk) -> None:
    desk.write("one")
    desk.saver.tick()
    assert desk.saved() == []
    desk.now += SETTLE
    desk.saver.tick()
    assert desk.saved() == ["one"]


@pytest.mark.parametrize("when", ["killed", "stopped"])
def test_files_of_a_cut_off_process_are_never_saved(desk: Desk, when: str) -> None:
    desk.write("one")
    desk.now += SETTLE
    desk.saver.tick()
    desk.write("tw")
    desk.steady = False
    desk.now += 100 * SETTLE
    desk.saver.tick()
    if when == "killed":
        desk.saver.final(trusted=False)
        assert "not saved" in desk.said[-1]
    assert desk.saved() == ["one"]


@pytest.mark.parametrize(("rest", "saved"), [(SETTLE, ["zero"]), (SETTLE + 4, ["one"])])
def test_files_of_a_killed_process_are_saved_after_long_rest(
    desk: Desk, rest: float, saved: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    desk.saver._policy = Checkpointing(every=300.0)
    desk.write("zero")
    desk.now += SETTLE
    desk.saver.tick()
    monkeypatch.setattr(folder_watch, "SLOW", 1.0)  # a byte a second
    desk.write("one")
    desk.now += rest
    desk.saver.tick()
    assert desk.saved() == ["zero"]
    desk.steady = False
    desk.saver.final(trusted=False)
    assert desk.saved() == saved


def test_files_of_a_process_that_ended_itself_are_saved_immediately(desk: Desk) -> None:
    desk.write("one")
    desk.steady = False
    desk.saver.final(trusted=True, finished={"code": 0})
    assert desk.saved() == ["one"]


def test_folder_that_changes_during_its_copy_is_not_saved(desk: Desk) -> None:
    desk.write("one")
    desk.now += SETTLE
    desk.meanwhile = lambda: desk.write("two")
    desk.saver.tick()
    assert desk.saved() == []


def test_file_changing_within_one_long_write_is_not_saved(desk: Desk) -> None:
    """Neither size nor modification time tells of it."""

    def go_on_writing() -> None:
        path = desk.folder / "model"
        times = path.stat().st_atime_ns, path.stat().st_mtime_ns
        with open(path, "r+") as file:
            file.write("two")
        os.utime(path, ns=times)

    desk.write("one")
    desk.now += SETTLE
    desk.meanwhile = go_on_writing
    desk.saver.tick()
    assert desk.saved() == []
    desk.meanwhile = lambda: None
    desk.saver.tick()
    assert desk.saved() == ["two"]
