"""Where the ranks of one run save together: rank 0 chooses, a little ahead, an iteration that all will reach.

Ranks that train together are never more than one iteration apart, so that none is past what was chosen. An
iteration is known by its number since this start: all ranks begin at the same place.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hostler.records import handoff

AHEAD = 2  # iterations between the choice and the save
NAME = "agreed.json"


@dataclass(frozen=True)
class Agreed:
    at: int
    reason: str | None  # to leave after the save; None: go on


class Agreement:
    def __init__(self, folder: Path, rank: int) -> None:
        self._path, self._rank = folder / NAME, rank
        self._seen = (0, 0)
        self._agreed: Agreed | None = None
        if rank == 0:
            self._path.unlink(missing_ok=True)

    def propose(self, tick: int, reason: str | None) -> None:
        """Rank 0, at iteration `tick`: save together soon. A stop is added to a save that is agreed on."""
        if self._agreed is None:
            self._agreed = Agreed(tick + AHEAD, reason)
        elif reason is None or self._agreed.reason is not None or tick > self._agreed.at - AHEAD:
            return
        else:
            self._agreed = Agreed(self._agreed.at, reason)
        handoff.write(self._path, {"at": self._agreed.at, "reason": self._agreed.reason})

    def now(self, tick: int) -> Agreed | None:
        """What was agreed on for this iteration."""
        if self._rank:
            self._look()
        agreed = self._agreed
        if agreed is None or tick < agreed.at:
            return None
        self._agreed = None
        return agreed

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
