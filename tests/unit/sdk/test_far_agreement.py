"""Ranks on several machines save at one and the same iteration, however late their notes are."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

import pytest

from hostler.sdk.board import Note, WireBoard, board_of
from hostler.sdk.far_agreement import FarAgreement
from hostler.worker import meeting
from hostler.worker.board import Board


class Air:
    """Notes that arrive late, each rank's for itself."""

    def __init__(self, seed: int) -> None:
        self.boards: list[FakeBoard] = []
        self.rng, self.lock = random.Random(seed), threading.Lock()

    def carry(self, name: str, value: Note) -> None:
        with self.lock:
            delays = [self.rng.choice((0.0, 0.0005, 0.002)) for _ in self.boards]
        for board, delay in zip(self.boards, delays, strict=True):
            threading.Timer(delay, board.arrive, (name, value)).start()


class FakeBoard(WireBoard):
    def __init__(self, air: Air) -> None:
        self.air = air
        self._notes = {"rank-0": {}}
        self._listeners: dict[str, Callable[[Note], None]] = {}
        self._closed = False
        air.boards.append(self)

    def post(self, name: str, value: Note) -> None:
        self.air.carry(name, value)

    def arrive(self, name: str, value: Note) -> None:
        known = self._notes.get(name)
        if known is None or known.get("number", 0) <= value.get("number", 0):
            self._notes[name] = value
            self._listeners.get(name, lambda note: None)(value)


@pytest.mark.parametrize("seed", range(3))
def test_all_ranks_save_at_the_same_iterations_and_none_waits_for_ever(seed: int) -> None:
    air, ranks, steps = Air(seed), 3, 400
    agreements = [FarAgreement(FakeBoard(air), rank, ranks) for rank in range(ranks)]
    together = threading.Barrier(ranks)  # as an all-reduce: nobody is a step ahead
    saved: list[list[int]] = [[] for _ in range(ranks)]

    def train(rank: int) -> None:
        for tick in range(steps):
            together.wait(60)
            if rank == 0 and tick % 7 == 3:
                agreements[0].propose(tick, None)
            agreed = agreements[rank].now(tick)
            if agreed is not None and agreements[rank].met(tick, agreed):
                saved[rank].append(tick)
        agreements[rank].leave()

    threads = [threading.Thread(target=train, args=(rank,), daemon=True) for rank in range(ranks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert saved[0] == saved[1] == saved[2]
    assert saved[0]


def test_a_rank_that_has_left_its_loops_takes_no_offer() -> None:
    air = Air(0)
    first, second = (FarAgreement(FakeBoard(air), rank, 2) for rank in range(2))
    second.leave()
    first.propose(0, "preempted")
    agreed = first.now(2)
    assert agreed is not None and not first.met(2, agreed)


def test_notes_reach_all_ranks_and_a_stranger_none(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    board = Board(meeting.listening(), "secret")
    try:
        first, second = (WireBoard("127.0.0.1", board.port, "secret", rank) for rank in range(2))
        stranger = WireBoard("127.0.0.1", board.port, "guessed", 2)
        _until(lambda: first.alive("ranks/1") and second.alive("ranks/0"))
        second.post("answer-1", {"number": 1})
        _until(lambda: first.read("answer-1") == {"number": 1})
        assert not stranger.alive("ranks/0") and first.read("answer-2") is None
        assert not first.alive("ranks/2")
        second._line.shutdown(2)
        _until(lambda: not first.alive("ranks/1"))
    finally:
        board.close()


def _until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_ranks_of_one_machine_use_its_folder(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathlib import Path

    monkeypatch.delenv("HOSTLER_BOARD", raising=False)
    assert board_of(Path(str(tmp_path)), 0).shared
