"""Where the ranks of one run save together: rank 0 chooses, a little ahead, an iteration that all will reach.

Ranks that train together are never more than one iteration apart, so that none is past what was chosen; each
says when it has come there. Where one is past it after all, there is no save, and the next choice is further
ahead. An iteration is known by its number, which a checkpoint keeps.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from hostler.records import handoff

AHEAD = 2  # iterations between the choice and the save, at first
ARRIVE = 120.0  # seconds in which all ranks must have come to it
LOOK = 0.005
NAME = "agreed.json"
OVER = 1 << 62  # the iteration of a rank that has left its loops


class Agreed(NamedTuple):
    at: int
    reason: str | None  # to leave after the save; None: go on


class Agreement:
    def __init__(
        self,
        folder: Path,
        rank: int,
        ranks: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder, self._rank, self._ranks = folder, rank, ranks
        self._clock, self._pause = clock, pause
        self._path = folder / NAME
        self._seen = (0, 0)
        self._agreed: Agreed | None = None
        self._ahead = AHEAD
        for path in [self._path] if rank == 0 else [self._place(rank)]:
            path.unlink(missing_ok=True)

    def propose(self, tick: int, reason: str | None) -> None:
        """Rank 0, at iteration `tick`: save together soon."""
        if self._agreed is None:
            self._agreed = Agreed(tick + self._ahead, reason)
            handoff.write(self._path, {"at": self._agreed.at, "reason": reason})

    def now(self, tick: int) -> Agreed | None:
        """What was agreed on for this iteration, or for one that is past."""
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
            handoff.write(self._place(self._rank), {"at": tick})
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
            handoff.write(self._place(self._rank), {"at": OVER})

    def _place(self, rank: int) -> Path:
        return self._folder / f"arrived-{rank}.json"

    def _where(self, rank: int) -> int:
        found = handoff.read(self._place(rank))
        return int(found["at"]) if found else -1

    def _look(self) -> None:
        try:
            facts = os.stat(self._path)
        except FileNotFoundError:
            return
        stamp = (facts.st_mtime_ns, facts.st_ino)
        if stamp != self._seen:
            self._seen = stamp
            found = handoff.read(self._path)
            if found is not None:
                self._agreed = Agreed(int(found["at"]), found["reason"])
