"""Plans when a drilled run is killed, from a seed and the undisturbed run's pace. Pure."""

from __future__ import annotations

import random

from hostler.frozen import dataclass

HURRY = 0.8  # of the work: a kill waits no longer than this for a checkpoint
FINE = 20  # signs of work that are enough to tell how far a run is


@dataclass(frozen=True)
class Pace:
    """Pace of the undisturbed run: seconds to its first sign of work and to its end, and how much it printed
    meanwhile (0: too little to measure progress by it)."""

    startup: float = 0.0
    total: float = 0.0
    amount: int = 0

    @property
    def work(self) -> float:
        return max(self.total - self.startup, 0.0)

    @property
    def every(self) -> float:
        """Seconds between two copies of the checkpoint folder. Files must rest as long as in real runs."""
        return min(300.0, max(0.1, self.work / 40))

    def share(self, said: int, age: float) -> float:
        """Share of the whole work that an attempt has done: by its output, since machines have slow minutes,
        or else by its age."""
        if self.amount:
            return said / self.amount
        return (age - self.startup) / self.work if self.work else 1.0


@dataclass(frozen=True)
class KillMoment:
    """Kill an attempt that has done this share of the work; `saved`: once it has saved something, if that
    comes in time."""

    share: float
    saved: bool

    def is_due(self, share: float, has_saved: bool) -> bool:
        return share >= max(HURRY, self.share) or (share >= self.share and (has_saved or not self.saved))


def moments(kills: int, seed: int, *, saves: bool) -> list[KillMoment]:
    """Moments of the kills. Each attempt gets a part of the work, so that all kills fall into the run; only
    the first of several may come before anything was saved. A script that saves nothing is killed once."""
    chance = random.Random(seed)
    count = kills if saves else 1
    part = HURRY / count
    return [
        KillMoment(chance.uniform(0.25, 1.0) * part, saves and (n > 0 or count == 1)) for n in range(count)
    ]
