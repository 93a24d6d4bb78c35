"""Successive halving without waiting: at each level the best of `factor` runs goes on, the others pause.

Levels are min, min·factor, min·factor² … steps. With `pause` a run stops at a level unless it is among the
best 1/factor of all that have reached it; whoever is later found to be, goes on from its checkpoint. So a
worker never waits, and no run is judged for good by the few that came before it. Without `pause` the others
end. When all else is over, the best of the highest level goes on to its own end: a search has a winner.
"""

from __future__ import annotations

from collections.abc import Sequence

from hostler.frozen import dataclass
from hostler.search.base import Go, Pause, Resume, Rungs, Scores, Standing, Stop, Verdict


@dataclass(frozen=True)
class Asha:
    first: int = 1  # the first level, in steps
    factor: float = 3.0
    last: int | None = None  # a run that has come so far is let alone
    pauses: bool = True
    compares: bool = True

    def level(self, step: int, run: str) -> int:
        reached = 0
        level = self.first
        while level <= step and (self.last is None or level < self.last):
            reached, level = level, self._next(level)
        return reached

    def judge(self, place: Standing, rungs: Rungs) -> Verdict:
        scores = rungs.get(place.level, {})
        if self.pauses:
            return Go() if place.run in self._best(scores) else Pause()
        if len(scores) < self.factor:
            return Go()
        cut = sorted(scores.values(), reverse=True)[max(1, int(len(scores) / self.factor)) - 1]
        return (
            Go() if scores.get(place.run, cut) >= cut else Stop(f"not among the best at step {place.level}")
        )

    def promote(self, rungs: Rungs, paused: Sequence[str], *, over: bool) -> Resume | None:
        waiting = set(paused)
        for level in sorted(rungs, reverse=True):
            here = [run for run in self._best(rungs[level]) if run in waiting]
            if here:
                return Resume(here[0], self._next(level))
            waiting -= rungs[level].keys()  # it is this level's ranks that count for them
        return self._winner(rungs, set(paused)) if over else None

    def _winner(self, rungs: Rungs, paused: set[str]) -> Resume | None:
        """The best of the highest level anybody waits at, unless somebody has come further."""
        if not rungs:
            return None
        top = max(rungs)
        here = [run for run in _ranked(rungs[top]) if run in paused]
        if not here or len(here) < len(rungs[top]):
            return None  # somebody from up there has ended already
        return Resume(here[0], self._next(top))

    def _best(self, scores: Scores) -> list[str]:
        return _ranked(scores)[: int(len(scores) / self.factor)]

    def _next(self, level: int) -> int:
        return max(level + 1, round(level * self.factor))


def _ranked(scores: Scores) -> list[str]:
    """Runs, the best first; of equals the one that began first."""
    return sorted(scores, key=lambda run: (-scores[run], run))
