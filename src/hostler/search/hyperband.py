"""Several halvings beside each other, each with a later first level: for curves that cross.

A run belongs to one bracket for good, by its number, and is compared within it alone. Bracket s begins at
min·factor^s; so many runs belong to it that all brackets spend about the same.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from hostler.search.asha import Asha
from hostler.search.base import Place, Resume, Rungs, Verdict, number_of

_GOLDEN = (math.sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Hyperband:
    first: int
    last: int
    factor: float = 3.0
    pauses: bool = True
    compares: bool = True

    def level(self, step: int, run: str) -> int:
        return self._asha(self.bracket(run)).level(step, run)

    def judge(self, place: Place, rungs: Rungs) -> Verdict:
        bracket = self.bracket(place.run)
        return self._asha(bracket).judge(place, self._within(bracket, rungs))

    def promote(self, rungs: Rungs, paused: Sequence[str], *, over: bool) -> Resume | None:
        for bracket in range(self.brackets):
            waiting = [run for run in paused if self.bracket(run) == bracket]
            found = self._asha(bracket).promote(self._within(bracket, rungs), waiting, over=over)
            if found:
                return found
        return None

    @cached_property
    def brackets(self) -> int:
        return 1 + int(math.log(self.last / self.first, self.factor) + 1e-9)

    def bracket(self, run: str) -> int:
        """Spread evenly over the runs' numbers, in the shares of the brackets."""
        shares = self._shares
        at = (number_of(run) * _GOLDEN) % 1.0 * sum(shares)
        for bracket, share in enumerate(shares):
            at -= share
            if at < 0:
                return bracket
        return len(shares) - 1

    @cached_property
    def _shares(self) -> list[float]:
        top = self.brackets - 1
        return [self.factor ** (top - s) / (top - s + 1) for s in range(self.brackets)]

    def _asha(self, bracket: int) -> Asha:
        return Asha(round(self.first * self.factor**bracket), self.factor, self.last, self.pauses)

    def _within(self, bracket: int, rungs: Rungs) -> Rungs:
        found = {
            level: {run: score for run, score in scores.items() if self.bracket(run) == bracket}
            for level, scores in rungs.items()
        }
        return {level: scores for level, scores in found.items() if scores}
