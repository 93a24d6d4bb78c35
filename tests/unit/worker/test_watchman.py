"""The watchman with a clock of its own: limits and the stop road, moment by moment."""

from __future__ import annotations

import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hostler.attempt.usage import Usage
from hostler.records.run import handoff
from hostler.records.run.handoff import Handoff
from hostler.settings import Timing
from hostler.spec.job import Job, Limits, Resources
from hostler.worker.run.watch import ORPHAN_GRACE, Watchman


class Scene:
    """A process that only remembers what was done to it."""

    def __init__(self, tmp_path: Path, limits: Limits, spent: float = 0.0, memory: int | None = None) -> None:
        self.now = 100.0
        self.done: list[str] = []
        self.folder = Handoff(tmp_path)
        self.pump: Any = SimpleNamespace(moved=self.now, measured=False, note=self.done.append)
        self.saver: Any = SimpleNamespace(moved=self.now)
        process: Any = SimpleNamespace(
            signal=lambda number: self.done.append(signal.Signals(number).name),
            kill=lambda: self.done.append("kill"),
        )
        job = Job(name="j", command=("x",), limits=limits, resources=Resources(memory=memory))
        timing = Timing(grace=30.0)
        self.stop: str | None = None
        self.watchman = Watchman(
            job,
            self.folder,
            self.pump,
            self.saver,
            process,
            timing,
            lambda: self.now,
            spent,
            stop=lambda: self.stop,
        )

    def at(self, seconds: float, stop: str | None = None) -> list[str]:
        """What was done by `seconds` after the start."""
        self.now, self.stop = 100.0 + seconds, stop
        self.watchman.check()
        return self.done


def test_without_limits_nothing_is_done_ever(tmp_path: Path) -> None:
    assert Scene(tmp_path, Limits()).at(1e9) == []


def test_a_slow_start_is_not_a_hang(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Limits(hang=10, start=600))
    scene.pump.moved = 101.0  # a warning of an import; then a download, and a compiler
    assert scene.at(599) == [] and scene.watchman.killed_for is None
    scene.pump.moved, scene.pump.measured = 699.0, True  # the first step
    assert scene.at(608.9) == []
    scene.at(609)
    assert scene.watchman.killed_for == "hang"


def test_silent_start_is_a_hang_once_starts_are_over(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Limits(hang=10, start=60))
    scene.pump.moved = 155.0
    assert scene.at(64.9) == []
    scene.at(65)
    assert scene.watchman.killed_for == "hang"


def test_silence_after_the_first_step_is_judged_by_hang(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Limits(hang=10, start=60))
    assert scene.at(59) == [] and scene.watchman.killed_for is None
    scene.pump.moved, scene.pump.measured = 159.5, True
    assert scene.at(69) == []
    scene.saver.moved = 165.0
    assert scene.at(74.9) == []
    scene.at(75.1)
    assert scene.watchman.killed_for == "hang" and scene.done == [
        "asked to stop: it made no progress for limits.hang",
        "SIGTERM",
    ]


def test_no_first_sign_at_all_is_a_slow_start(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Limits(hang=10, start=60))
    scene.at(60)
    assert scene.watchman.killed_for == "start"


def test_hang_longer_than_start_is_the_starts_grace_too(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Limits(hang=100, start=60))
    assert scene.at(99) == [] and scene.at(100)


def test_time_is_that_of_all_attempts(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Limits(time=100), spent=70.0)
    assert scene.at(29) == []
    scene.at(30)
    assert scene.watchman.killed_for == "time"


def test_unaware_process_gets_sigterm_immediately_and_sigkill_after_grace(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Limits())
    assert not scene.watchman.asked
    assert (
        scene.at(1, "person") == ["asked to stop: a person asked for it", "SIGTERM"] and scene.watchman.asked
    )
    assert handoff.read(scene.folder.stop) == {"reason": "person"}
    assert scene.at(30.9, "person")[2:] == []
    assert scene.at(31, "person")[2:] == ["kill"]


def test_joined_process_gets_the_file_and_sigterm_only_late(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Limits())
    handoff.write(scene.folder.joined, {})
    assert scene.at(0, "person") == ["asked to stop: a person asked for it"] and scene.folder.stop.exists()
    assert scene.at(23.9, "person")[1:] == []
    assert scene.at(24, "person")[1:] == ["SIGTERM"]
    assert scene.at(30, "person")[2:] == ["kill"]


def test_without_a_parent_the_grace_is_short(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Limits())
    scene.at(0, "orphaned")
    assert scene.at(ORPHAN_GRACE, "orphaned")[-1] == "kill"


def test_a_stop_request_is_not_judged_as_a_hang(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Limits(hang=1, start=1, time=5))
    scene.at(0.5, "person")
    scene.at(20, "person")
    assert scene.watchman.killed_for is None


@pytest.mark.parametrize(("rss", "killed"), [(10, None), (11, "memory")])
def test_over_its_memory_it_is_killed_at_once(tmp_path: Path, rss: int, killed: str | None) -> None:
    scene = Scene(tmp_path, Limits(), memory=10)
    scene.watchman.weigh(Usage(rss=rss))
    assert scene.watchman.killed_for == killed and scene.done == (["kill"] if killed else [])


def test_unread_output_is_not_judged_silent_but_time_is(tmp_path: Path) -> None:
    scene = Scene(tmp_path, Limits(hang=1, start=1, time=50))
    scene.now = 140.0
    scene.watchman.check(read=False)
    assert scene.watchman.killed_for is None
    scene.now = 150.0
    scene.watchman.check(read=False)
    assert scene.watchman.killed_for == "time"
