"""Ranks on several machines save at one and the same iteration, however late their notes are."""

from __future__ import annotations

import random
import socket
import threading
import time
from collections.abc import Callable

import pytest

from hostler.errors import MachineError
from hostler.sdk.ranks import board as lines
from hostler.sdk.ranks.board import Note, WireBoard, board_of
from hostler.sdk.ranks.far_agreement import FarAgreement
from hostler.worker.gang import board as boards
from hostler.worker.gang import meeting
from hostler.worker.gang.board import NoticeBoard


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
        self._notes = {f"rank-{rank}": {} for rank in range(3)}
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
def test_all_ranks_save_at_the_same_iterations_and_none_hangs(seed: int) -> None:
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
    board = NoticeBoard(meeting.listening(), "secret")
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


def test_rank_that_does_not_read_is_dropped_and_others_continue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(boards, "SLOW", 0.2)
    board = NoticeBoard(meeting.listening(), "secret")
    try:
        with socket.create_connection(("127.0.0.1", board.port)) as deaf:
            deaf.sendall(b'{"secret": "secret", "rank": 1}\n')
            first = WireBoard("127.0.0.1", board.port, "secret", 0)
            _until(lambda: first.alive("ranks/1"))
            first.post("long", {"text": "x" * 15_000_000})
            _until(lambda: first.read("long"))
            first.post_surely("short", {})
            _until(lambda: not first.alive("ranks/1"))
            assert first.read("short") == {}
    finally:
        board.close()


def test_note_that_never_shows_is_waited_for_within_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lines, "SHOWN", 0.0)
    with meeting.listening() as silent:
        rank = WireBoard("127.0.0.1", silent.getsockname()[1], "secret", 1)
        with pytest.raises(MachineError, match="has not accepted part-7 within"):
            rank.post_surely("part-7", {})


def _until(true: Callable[[], object]) -> None:
    deadline = time.monotonic() + 10
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_ranks_of_one_machine_use_its_folder(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    from pathlib import Path

    monkeypatch.delenv("HOSTLER_BOARD", raising=False)
    assert board_of(Path(str(tmp_path)), 0).shared


class Hall:
    """Boards on which every note is read at once, and time that passes only while somebody waits."""

    def __init__(self, ranks: int) -> None:
        self.now = 0.0
        self.boards = [HallBoard(self) for _ in range(ranks)]
        self.ranks = [
            FarAgreement(board, rank, ranks, clock=lambda: self.now, pause=self.pause)
            for rank, board in enumerate(self.boards)
        ]

    def pause(self, seconds: float) -> None:
        self.now += seconds


class HallBoard(WireBoard):
    def __init__(self, hall: Hall) -> None:
        self.hall, self._closed = hall, False
        self._notes: dict[str, Note] = {"rank-0": {}, "rank-1": {}}
        self._listeners: dict[str, Callable[[Note], None]] = {}

    def post(self, name: str, value: Note) -> None:
        for board in self.hall.boards:
            board._notes[name] = value
            board._listeners.get(name, lambda note: None)(value)


def come(rank: FarAgreement, tick: int) -> bool:
    agreed = rank.now(tick)
    assert agreed is not None
    return rank.met(tick, agreed)


def test_decision_stands_though_rank_0_leaves_before_it_is_read() -> None:
    first, second = Hall(2).ranks
    first.propose(0, None)
    assert come(first, 2)
    first.leave()
    assert come(second, 2)


def test_what_was_decided_is_not_hidden_by_the_next_offer() -> None:
    hall = Hall(2)
    first, second = hall.ranks
    first.propose(0, None)
    waits = second.now(2)
    assert waits is not None and come(first, 2)
    first.propose(3, None)
    assert second.met(2, waits) and hall.now == 0.0
    assert come(first, 5) and come(second, 5)


def test_offer_is_not_replaced_before_a_slow_rank_comes() -> None:
    first, second = Hall(2).ranks
    first.propose(0, None)
    assert come(first, 2)
    first.propose(3, None)
    assert come(second, 2) and come(first, 5) and come(second, 5)


def test_nobody_waits_for_an_offer_that_rank_0_left_open() -> None:
    hall = Hall(2)
    first, second = hall.ranks
    first.propose(0, None)
    first.leave()
    assert not come(second, 2) and hall.now == 0.0


def test_a_rank_that_leaves_its_loops_takes_its_word_back() -> None:
    hall = Hall(2)
    first, second = hall.ranks
    first.propose(0, None)
    second.leave()
    assert not come(first, 2) and hall.now == 0.0


def test_rank_that_waited_too_long_for_rank_0_says_so() -> None:
    hall = Hall(2)
    first, second = hall.ranks
    first.propose(0, None)
    assert not come(second, 2) and hall.now > 100
    assert not come(first, 2)


def test_rank_0_does_not_wait_for_a_gone_ranks_answer() -> None:
    hall = Hall(2)
    first = hall.ranks[0]
    hall.boards[1]._listeners.clear()
    hall.boards[0]._notes.pop("rank-1")
    first.propose(0, None)
    assert not come(first, 2) and hall.now == 0.0
