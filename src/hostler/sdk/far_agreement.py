"""Where the ranks of several machines save together: rank 0 offers an iteration, which all must take in time.

A note takes a while to arrive, and a rank that has gone past an iteration cannot come back to it. So each
answers as soon as an offer arrives, beside its loop, whatever that waits for: taken, if it has not come there
yet. At the iteration itself all wait for rank 0, which waits for the answers, to say whether it counts. So
nobody waits for one who waits for him.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hostler.sdk.agreement import AHEAD, ARRIVE, LOOK, Agreed
from hostler.sdk.board import Note, WireBoard

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
        self._number = 0  # of the offer that stands
        self._agreed: Agreed | None = None
        self._ahead = AHEAD
        if rank:
            board.listen(OFFER, self._offered)

    def propose(self, tick: int, reason: str | None) -> None:
        """Rank 0, at iteration `tick`: save together soon."""
        if self._agreed is None:
            self._number += 1
            self._agreed = Agreed(tick + self._ahead, reason)
            offer = {"number": self._number, "at": self._agreed.at, "reason": reason}
            self._board.post(OFFER, offer)

    def now(self, tick: int) -> Agreed | None:
        """What was agreed on for this iteration, or for one that is past."""
        with self._lock:
            self._tick = tick
            agreed = self._agreed
            if agreed is None or tick < agreed.at:
                return None
            self._agreed = None
            return agreed

    def met(self, tick: int, agreed: Agreed) -> bool:
        """Whether all save at this iteration: all have taken it, and are there."""
        if self._rank:
            if tick != agreed.at:
                self._answer(self._number, taken=False)
            return self._outcome()
        taken = tick == agreed.at and self._all_took_it()
        self._ahead = AHEAD if taken else min(2 * self._ahead, FURTHEST)
        self._board.post(OUTCOME, {"number": self._number, "counts": taken})
        return taken

    def leave(self) -> None:
        """This rank has left its loops: nobody waits for it."""
        with self._lock:
            self._left = True
        if self._rank == 0:
            self._board.post(OUTCOME, {"number": self._number, "counts": False})

    def _offered(self, note: Note) -> None:
        """In the thread that listens."""
        with self._lock:
            taken = not self._left and self._tick < int(note["at"])
            self._number = int(note["number"])
            if taken:
                self._agreed = Agreed(int(note["at"]), note["reason"])
        self._answer(int(note["number"]), taken=taken)

    def _answer(self, number: int, *, taken: bool) -> None:
        self._board.post(_answers(self._rank), {"number": number, "taken": taken})

    def _all_took_it(self) -> bool:
        deadline = self._clock() + ARRIVE
        while self._clock() < deadline:
            notes = [self._board.read(_answers(rank)) for rank in range(1, self._ranks)]
            answers = [note for note in notes if note is not None and note["number"] == self._number]
            if not all(note["taken"] for note in answers):
                return False
            if len(answers) == self._ranks - 1:
                return True
            self._pause(LOOK)
        return False

    def _outcome(self) -> bool:
        deadline = self._clock() + ARRIVE
        while self._clock() < deadline and self._board.alive("ranks/0"):
            note = self._board.read(OUTCOME)
            if note is not None and note["number"] == self._number:
                return bool(note["counts"])
            self._pause(LOOK)
        return False


def _answers(rank: int) -> str:
    return f"answer-{rank}"
