"""What a hundred runs of one process ask of it is looked up once for all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from hostler.attempt.usage import Usage
from hostler.records.run import handoff
from hostler.records.run.handoff import Handoff
from hostler.worker.run.exit import Exit
from hostler.worker.shared.slot import AGE, LOOK, SharedAnswer, SharedSlot, SlotLooks


class Host:
    """The process that the runs share."""

    pid, group, supervisor, supervisor_start = 1, None, 0, ""

    def __init__(self) -> None:
        self.exit: Exit | None = None
        self.asked, self.weighed = 0, list[int | None]()

    def poll(self) -> Exit | None:
        self.asked += 1
        return self.exit

    def steady(self) -> bool:
        return self.exit is None

    def use(self, gpus: Callable[[], Any], limit: int | None) -> Usage:
        self.weighed.append(limit)
        return Usage(rss=len(self.weighed))


class Scene:
    def __init__(self, folder: Path, runs: int) -> None:
        self.now, self.host = 100.0, Host()
        self.looks = SlotLooks(self.host, lambda: self.now)  # type: ignore[arg-type]
        self.folders = [Handoff(folder / str(number)) for number in range(runs)]
        for one in self.folders:
            one.folder.mkdir()
        self.slots = [
            SharedSlot(self.host, one, folder / "log", runs - 1, lambda: None, self.looks)  # type: ignore[arg-type]
            for one in self.folders
        ]

    def ended(self) -> list[int | None]:
        return [found.code if (found := slot.poll()) else None for slot in self.slots]


def test_one_look_serves_all_slots(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 5)
    assert scene.ended() == [None] * 5 and scene.host.asked == 1
    handoff.write(scene.folders[3].seat, {"code": 7})
    assert scene.ended() == [None] * 5, "looked a moment ago"
    scene.now += LOOK
    assert scene.ended() == [None, None, None, 7, None]


def test_one_sample_of_the_use_serves_all_slots(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 5)
    assert [slot.use(list, 7).rss for slot in scene.slots] == [1] * 5
    scene.now += AGE + 0.1
    assert [slot.use(list, 7).rss for slot in scene.slots] == [2] * 5 and scene.host.weighed == [7, 7]


def test_end_of_the_process_is_the_end_of_all_that_have_not_left(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 3)
    (tmp_path / "log").write_text("killed\n")
    handoff.write(scene.folders[0].seat, {"code": 0})
    scene.host.exit = Exit(code=9)
    assert scene.ended() == [0, 9, 9]
    assert [one.log.exists() and one.log.read_text() for one in scene.folders] == [
        False,
        "killed\n",
        "killed\n",
    ]


def test_nobody_waits_for_a_look_that_somebody_else_takes(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 2)
    with scene.looks._lock:  # as one does whose file system does not answer
        assert scene.slots[0].poll() is None
    assert scene.host.asked == 0


def test_slow_looks_are_rare(tmp_path: Path) -> None:
    scene = Scene(tmp_path, 2)

    def slowly() -> None:
        scene.now += 0.5

    scene.host.poll = lambda: slowly()  # type: ignore[method-assign]
    scene.ended()
    assert scene.now == 100.5
    scene.now = 104.9
    scene.ended()
    assert scene.now == 104.9
    scene.now = 105.1
    scene.ended()
    assert scene.now == 105.6


def test_answer_is_never_older_than_asked_for() -> None:
    now, asked = [0.0], []

    def ask() -> float:
        asked.append(now[0])
        return now[0]

    fresh, recent = SharedAnswer(ask, clock=lambda: now[0]), SharedAnswer(ask, 0.5, lambda: now[0])
    assert fresh.get() == recent.get() == 0.0
    now[0] = 0.4
    assert fresh.get() == 0.4 and recent.get() == 0.0
    now[0] = 0.6
    assert recent.get() == 0.6 and asked == [0.0, 0.0, 0.4, 0.6]


def test_those_who_come_while_somebody_asks_share_the_next_answer() -> None:
    came, go, under_way = threading.Semaphore(0), threading.Event(), threading.Event()
    now, asked = [0.0], list[float]()

    def clock() -> float:
        came.release()
        return now[0]

    def ask() -> int:
        asked.append(now[0])
        under_way.set()
        assert go.wait(60)
        return len(asked)

    answer, found = SharedAnswer(ask, clock=clock), list[int]()
    threads = [threading.Thread(target=lambda: found.append(answer.get())) for _ in range(20)]
    threads[0].start()
    assert under_way.wait(60)
    now[0] = 1.0
    for one in threads[1:]:
        one.start()
    assert all(came.acquire(timeout=60) for _ in range(2 + 19)), "each has looked at the clock, and waits"
    go.set()
    for one in threads:
        one.join(60)
    assert sorted(found) == [1] + [2] * 19 and asked == [0.0, 1.0]
