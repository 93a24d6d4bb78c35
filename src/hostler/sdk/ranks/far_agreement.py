"""Agreement of ranks on several machines: rank 0 offers an iteration that all must accept in time.

A note takes a while to arrive, and a rank that has gone past an iteration cannot come back to it. So each
answers as soon as an offer arrives, beside its loop, whatever that waits for: taken, if it has not come there
yet. At the iteration itself all wait for rank 0, which waits for the answers, to say whether it counts. So
nobody waits for one who waits for him.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hostler.sdk.ranks.agreement import AHEAD, ARRIVE, LOOK, Agreed
from hostler.sdk.ranks.board import Note, WireBoard

OFFER, OUTCOME = "offer", "outcome"
FURTHEST = 1 << 12  # iterations ahead, at most


class FarAgreement:
    def __init__(
        self,
        board: WireBoard,
        rank: int,
        ranks: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._board, self._rank, self._ranks = board, rank, ranks
        self._clock, self._pause = clock, pause
        self._lock = threading.Lock()
        self._tick, self._left = -1, False
        self._number = 0  # of the newest offer
        self._turn = 0  # of the offer that `now` has returned last
        self._offers: dict[int, Agreed] = {}  # taken, and not come to yet; oldest first
        self._outcomes: dict[int, bool] = {}  # what rank 0 has said of each: the first word holds
        self._ahead = AHEAD
        if rank:
            board.listen(OUTCOME, self._decided)
            board.listen(OFFER, self._offered)

    def propose(self, tick: int, reason: str | None) -> None:
        """Rank 0, at iteration `tick`: save together soon."""
        if not self._offers:
            self._number += 1
            agreed = self._offers[self._number] = Agreed(tick + self._ahead, reason)
            self._board.post(OFFER, {"number": self._number, "at": agreed.at, "reason": reason})

    def now(self, tick: int) -> Agreed | None:
        """The agreement that applies to this iteration or an earlier one."""
        with self._lock:
            self._tick = tick
            due = [number for number, agreed in self._offers.items() if agreed.at <= tick]
            agreeds = [self._offers.pop(number) for number in due]
            self._turn = due[-1] if due else self._turn
            return agreeds[-1] if agreeds else None

    def met(self, tick: int, agreed: Agreed) -> bool:
        """Whether all save at this iteration: all have taken it, and are there."""
        if self._rank:
            if tick == agreed.at:
                return self._outcome(self._turn)
            self._take_back(self._turn)
            return False
        taken = tick == agreed.at and self._all_took_it()
        self._ahead = AHEAD if taken else min(2 * self._ahead, FURTHEST)
        self._board.post(OUTCOME, {"number": self._number, "counts": taken})
        return taken

    def leave(self) -> None:
        """This rank has left its loops: nobody waits for it. What was decided before stands, as somebody may
        not have read it yet."""
        with self._lock:
            self._left = True
            open_offer, self._offers = bool(self._offers), {}
        if open_offer and self._rank == 0:
            self._board.post(OUTCOME, {"number": self._number, "counts": False})
        elif open_offer:
            self._take_back(self._number)

    def _offered(self, note: Note) -> None:
        """In the thread that listens."""
        number, at = int(note["number"]), int(note["at"])
        with self._lock:
            if number <= self._number:
                return
            taken = not self._left and self._tick < at
            self._number = number
            if taken:
                self._offers[number] = Agreed(at, note["reason"])
        self._answer(number, taken=taken)

    def _decided(self, note: Note) -> None:
        """In the thread that listens: a later word of rank 0 may come before this one is asked for."""
        self._outcomes.setdefault(int(note["number"]), bool(note["counts"]))

    def _take_back(self, number: int) -> None:
        """Rank 0 need not wait for us; of an older offer than the newest, it has decided already."""
        if number == self._number:
            self._answer(number, taken=False)

    def _answer(self, number: int, *, taken: bool) -> None:
        self._board.post(_answers(self._rank), {"number": number, "taken": taken})

    def _all_took_it(self) -> bool:
        deadline, others = self._clock() + ARRIVE, range(1, self._ranks)
        while self._clock() < deadline:
            notes = [self._board.read(_answers(rank)) for rank in others]
            answers = [note for note in notes if note is not None and note["number"] == self._number]
            if not all(note["taken"] for note in answers):
                return False
            if len(answers) == len(others):
                return True
            if not all(self._board.alive(f"ranks/{rank}") for rank in others):
                return False
            self._pause(LOOK)
        return False

    def _outcome(self, number: int) -> bool:
        deadline = self._clock() + ARRIVE
        while number not in self._outcomes and self._board.alive("ranks/0"):
            if self._clock() > deadline:
                self._take_back(number)
                break
            self._pause(LOOK)
        for old in [outcome for outcome in list(self._outcomes) if outcome < number]:
            del self._outcomes[old]
        return self._outcomes.get(number, False)


def _answers(rank: int) -> str:
    return f"answer-{rank}"
