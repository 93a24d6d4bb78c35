"""All tools of one attempt, with processes of their own, beside the attempts before and after it."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from hostler import env
from hostler.analysis import foreign
from hostler.errors import StoreError
from hostler.records import layout
from hostler.records.run import tracked
from hostler.records.run.log import RunKey
from hostler.records.series.points import Point
from hostler.spec.job import Job
from hostler.spec.tracking import MLFLOW, TENSORBOARD, Tracking
from hostler.trackers import feed
from hostler.trackers.base import Closing
from hostler.trackers.feed_folder import CLOSED, CLOSING, OPEN, FeedFolder
from hostler.trackers.feeds import Feeds, Subject
from hostler.trackers.mlflow import URI
from seen_world import Seen


def until(met: Callable[[], object]) -> None:
    end = time.monotonic() + 120
    while not met():
        assert time.monotonic() < end
        time.sleep(0.02)


def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Grows with each look of an attempt at what the one before it has delivered."""
    looked: list[str] = []
    real = tracked.read
    monkeypatch.setattr(tracked, "read", lambda *a, **b: looked.append("") or real(*a, **b))
    return looked


@dataclass
class Ground:
    folder: Path
    seen: Seen
    job: Job
    said: list[str] = field(default_factory=list)
    made: list[Feeds] = field(default_factory=list)

    @property
    def boards(self) -> str:
        return str(self.folder / "boards")

    @property
    def run(self) -> str:
        return self.job.run_id(0)

    def feeds(self, attempt: int) -> Feeds:
        key = RunKey(self.job.name, self.run)
        subject = Subject(self.seen.store, self.job, key, attempt, {"lr": 1}, 1.0)
        able = feed.interpreters(sys.executable, env.inherited())
        one = Feeds(subject, self.folder / f"desk-{attempt}", able, self.said.append)
        self.made.append(one)
        return one

    def state(self) -> str:
        return next((one.state for one in tracked.read(self.seen.store, self.run)), "")

    def mark(self, attempt: int, state: str) -> None:
        tracked.write(self.seen.store, self.run, tracked.Tracked(TENSORBOARD, "id", attempt, state))

    def left_by_tool(self, attempt: int, *names: str) -> None:
        """Files, finished all at once."""
        files = FeedFolder(self.folder / f"desk-{attempt}" / TENSORBOARD).files
        files.mkdir(parents=True, exist_ok=True)
        coming = self.folder / "coming"
        coming.mkdir()
        for name in names or ("events",):
            (coming / name).write_text(name)
        coming.rename(files)  # over an empty folder

    def files(self) -> list[str]:
        """Those that tools left, as the store has them: <attempt>/<tool>/<name>."""
        prefix = layout.trackers(self.run)
        keys = [entry.key.removeprefix(prefix) for entry in self.seen.store.list(prefix)]
        return sorted(key for key in keys if not key.endswith(".json"))

    def begun(self, attempt: int) -> bool:
        return (self.folder / f"desk-{attempt}").exists()


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    seen = Seen(tmp_path / "store")
    where = Tracking(TENSORBOARD, {"dir": str(tmp_path / "boards")})
    made = Ground(tmp_path, seen, seen.submit("s", [{"lr": 1}], trackers=(where,)))
    yield made
    for one in made.made:
        one.abandon()


def test_attempt_reports_its_delivery_before_its_end_and_after_it(ground: Ground) -> None:
    one = ground.feeds(1)
    one.start()
    until(lambda: ground.state() == OPEN)
    one.take([Point(1, 1.0, {"loss": 0.5})])
    one.announce()
    assert ground.state() == CLOSING
    one.close(Closing(), 120)
    assert ground.state() == CLOSED
    one.abandon()
    assert ground.state() == CLOSED


def test_record_says_closed_once_all_files_are_in_store(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who sees it closed may read the files; killed between the two, it is not called delivered."""
    states: list[str] = []
    monkeypatch.setattr(tracked, "upload", lambda *_: states.append(ground.state()))
    one = ground.feeds(1)
    one.start()
    until(lambda: ground.state() == OPEN)
    monkeypatch.setattr(one, "_look", lambda: None)  # the file is there at the end alone
    ground.left_by_tool(1)
    one.close(Closing("done"), 120)
    assert states == [OPEN] and ground.state() == CLOSED


def test_file_that_store_refuses_leaves_the_record_open(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise StoreError("store: no space left on device")

    monkeypatch.setattr(tracked, "upload", full)
    one = ground.feeds(1)
    one.start()
    until(lambda: ground.state() == OPEN)
    ground.left_by_tool(1)
    one.close(Closing("done"), 120)
    assert ground.state() == OPEN
    assert "trackers: store: no space left on device" in ground.said


def test_files_of_an_attempt_stay_until_all_of_next_arrived(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[list[str]] = []
    real = tracked.upload

    def upload(*given: Any) -> None:
        there.append(ground.files())
        real(*given)

    first = ground.folder / "first"
    first.write_text("1")
    tracked.upload(ground.seen.store, ground.run, 1, TENSORBOARD, "first", first)
    monkeypatch.setattr(tracked, "upload", upload)
    one = ground.feeds(2)
    one.start()
    until(lambda: ground.begun(2))
    ground.left_by_tool(2, "a", "b")
    one.close(Closing("done"), 120)
    assert there[-1] == ["000001/tensorboard/first", "000002/tensorboard/a"]
    assert ground.files() == ["000002/tensorboard/a", "000002/tensorboard/b"]


def test_attempt_that_leaves_its_tools_to_the_next_blocks_nobody(ground: Ground) -> None:
    one = ground.feeds(1)
    one.start()
    until(lambda: ground.state() == OPEN)
    one.announce()
    one.abandon()
    assert ground.state() == OPEN


def test_attempt_blocks_nobody_though_its_thread_ended_first(ground: Ground) -> None:
    """It hears that it is over before its tools have ended, and may be gone when they have."""
    one = ground.feeds(1)
    one.start()
    until(lambda: ground.state() == OPEN)
    one.announce()
    one._given_up = True  # what abandon() does first
    one._over.set()
    one._thread.join()
    assert ground.state() == CLOSING
    one.abandon()
    assert ground.state() == OPEN


def test_next_attempt_starts_its_tools_after_the_previous_delivered(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = looks(monkeypatch)
    ground.mark(1, CLOSING)
    one = ground.feeds(2)
    one.start()
    one.take([Point(1, 1.0, {"loss": 0.5})])
    until(lambda: len(looked) > 3)
    assert not ground.begun(2)
    ground.mark(1, CLOSED)
    until(lambda: ground.begun(2))
    one.close(Closing("done"), 120)
    (run,) = foreign.past(TENSORBOARD, ground.boards)
    assert [point.step for point in run.points] == [1]


def test_attempt_that_ends_before_its_turn_leaves_it_to_next(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked = looks(monkeypatch)
    ground.mark(1, CLOSING)
    one = ground.feeds(2)
    one.start()
    one.take([Point(1, 1.0, {"loss": 0.5})])
    until(lambda: len(looked) > 1)
    one._over.set()  # what close() does first
    ground.mark(1, CLOSED)
    one.close(Closing(), 120)
    assert not ground.begun(2)


def test_server_that_never_answered_keeps_nobody_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(URI, "http://127.0.0.1:9")
    seen = Seen(tmp_path / "store")
    ground = Ground(tmp_path, seen, seen.submit("s", [{"lr": 1}], trackers=(Tracking(MLFLOW, {}),)))
    one = ground.feeds(1)
    one.start()
    until(lambda: "does not answer" in next((t.error for t in tracked.read(seen.store, ground.run)), ""))
    begun = time.monotonic()
    one.close(Closing("done"), 3600)
    assert time.monotonic() - begun < 600
    assert ground.state() == "failed"
    assert [
        line
        for line in ground.said
        if line.startswith("mlflow: http://127.0.0.1:9") and "does not answer" in line
    ]
