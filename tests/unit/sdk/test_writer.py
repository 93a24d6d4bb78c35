"""The thread that writes checkpoints, with writes that are held up."""

from __future__ import annotations

import threading

import pytest

from hostler.sdk.checkpoint.writer import Writer


class Scene:
    def __init__(self) -> None:
        self.begun, self.written = list[str](), list[str]()
        self.gate, self.entered = threading.Semaphore(0), threading.Semaphore(0)
        self.writer = Writer(self._write)

    def _write(self, job: str) -> None:
        self.begun.append(job)
        self.entered.release()
        assert self.gate.acquire(timeout=30)
        self.written.append(job)

    def let(self, count: int = 1) -> None:
        self.gate.release(count)


def test_newest_state_replaces_a_waiting_older_one() -> None:
    scene = Scene()
    scene.writer.give("a")
    assert scene.entered.acquire(timeout=30)
    for job in ("b", "c", "d"):
        scene.writer.give(job)
    assert scene.writer.busy and not scene.writer.wait(0)
    scene.let(9)
    assert scene.writer.wait(30) and scene.written == ["a", "d"] and not scene.writer.busy


def test_one_can_be_waited_for_while_later_ones_wait() -> None:
    scene = Scene()
    first = scene.writer.give("a")
    assert scene.entered.acquire(timeout=30)
    second = scene.writer.give("b")
    scene.let()
    assert scene.writer.wait(30, first) and not scene.writer.wait(0, second)
    scene.let()
    assert scene.writer.wait(30, second)


def test_what_was_replaced_is_settled_only_by_what_replaced_it() -> None:
    scene = Scene()
    scene.writer.give("a")
    assert scene.entered.acquire(timeout=30)
    second = scene.writer.give("b")
    assert scene.writer.withdraw() == "a"
    scene.let()
    assert not scene.writer.wait(0.05, second), "it is neither written nor replaced yet"
    scene.writer.give("c")
    scene.let()
    assert scene.writer.wait(30, second) and scene.written == ["a", "c"]


@pytest.mark.parametrize("ended", [False, True])
def test_what_was_taken_back_for_nothing_is_not_waited_for(ended: bool) -> None:
    scene = Scene()
    first = scene.writer.give("a")
    assert scene.entered.acquire(timeout=30)
    scene.writer.give("b")
    scene.writer.withdraw()
    if ended:
        scene.let()
        assert scene.writer.wait(30, first)
    scene.writer.give_up()
    scene.let()
    assert scene.writer.wait(30) and scene.written == ["a"]


def test_writer_without_a_thread_writes_immediately(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    scene = Scene()
    scene.let()
    scene.writer.give("a")
    assert scene.written == ["a"] and not scene.writer.busy


def test_what_waits_is_written_although_the_one_before_it_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    said = threading.Event()
    monkeypatch.setattr(threading, "excepthook", lambda found: said.set())
    gate, written = threading.Event(), list[str]()

    def write(job: str) -> None:
        assert gate.wait(30)
        if job == "a":
            raise ValueError(job)
        written.append(job)

    writer = Writer(write)
    writer.give("a")
    writer.give("b")
    gate.set()
    assert writer.wait(30) and written == ["b"] and not writer.busy
    assert said.wait(30), "what failed is said"
