"""Agreement of ranks on where to save: rank 0 chooses an iteration a little ahead of all.

Ranks that train together are never more than one iteration apart, so that none is past what was chosen; each
says when it has come there. Where one is past it after all, none saves, and the next choice is further
ahead. An iteration is known by its number, which a checkpoint keeps.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from hostler.sdk.ranks.board import Board, Note

AHEAD = 2  # iterations between the choice and the save, at first
ARRIVE = 120.0  # seconds in which all ranks must have come to it
LOOK = 0.005
NAME = "agreed"
OVER = 1 << 62  # the iteration of a rank that has left its loops


class Agreed(NamedTuple):
    at: int
    reason: str | None  # to leave after the save; None: go on


class Agreement:
    def __init__(
        self,
        board: Board,
        rank: int,
        ranks: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._board, self._rank, self._ranks = board, rank, ranks
        self._clock, self._pause = clock, pause
        self._seen: Note | None = None
        self._agreed: Agreed | None = None
        self._ahead = AHEAD
        board.clear(NAME if rank == 0 else _arrived(rank))

    def propose(self, tick: int, reason: str | None) -> None:
        """Rank 0, at iteration `tick`: save together soon."""
        if self._agreed is None:
            self._agreed = Agreed(tick + self._ahead, reason)
            self._board.post(NAME, {"at": self._agreed.at, "reason": reason})

    def now(self, tick: int) -> Agreed | None:
        """The agreement that applies to this iteration or an earlier one."""
        if self._rank:
            self._look()
        agreed = self._agreed
        if agreed is None or tick < agreed.at:
            return None
        self._agreed = None
        return agreed

    def met(self, tick: int, agreed: Agreed) -> bool:
        """Whether this iteration is the one that was agreed on; for rank 0: whether it is for all."""
        if self._rank:
            self._board.post(_arrived(self._rank), {"at": tick})
            return tick == agreed.at
        deadline = self._clock() + ARRIVE
        missing = set(range(1, self._ranks))
        while missing and self._clock() < deadline:
            where = {rank: self._where(rank) for rank in missing}
            if any(at > agreed.at for at in where.values()):
                break
            missing = {rank for rank, at in where.items() if at != agreed.at}
            if missing:
                self._pause(LOOK)
        self._ahead = AHEAD if not missing else 2 * self._ahead
        return not missing

    def leave(self) -> None:
        """This rank has left its loops: nobody waits for it."""
        if self._rank:
            self._board.post(_arrived(self._rank), {"at": OVER})

    def _where(self, rank: int) -> int:
        found = self._board.read(_arrived(rank))
        return int(found["at"]) if found else -1

    def _look(self) -> None:
        found = self._board.read(NAME)
        if found is not None and found is not self._seen:
            self._seen = found
            self._agreed = Agreed(int(found["at"]), found["reason"])


def _arrived(rank: int) -> str:
    return f"arrived-{rank}"
