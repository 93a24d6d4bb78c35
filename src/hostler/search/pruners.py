"""The pruner that a sweep's `prune:` names."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from functools import cached_property

from hostler.frozen import dataclass
from hostler.search.asha import Asha
from hostler.search.base import WORST, Go, Pruner, Resume, Rungs, Standing, Stop, Verdict, number_of
from hostler.spec.pruning import Prune


def pruner(spec: Prune) -> Pruner:
    first = spec.min or 1
    if spec.method == "asha":
        return Asha(first, spec.factor, spec.max, spec.pause)
    if spec.method == "hyperband":
        assert spec.max is not None
        return Hyperband(first, spec.max, spec.factor, spec.pause)
    if spec.method == "median":
        return Median(first, spec.every, spec.others)
    return Patience(spec.patience, spec.delta, spec.min or 0)


# A run whose best score is below the median of the others at the same level ends.


@dataclass(frozen=True)
class Median:
    first: int = 1  # the first level, in steps
    every: int | None = None  # steps between two levels; None: each is twice the one before
    others: int = 5  # so many others must have come as far
    compares: bool = True
    pauses: bool = False

    def level(self, step: int, run: str) -> int:
        if step < self.first:
            return 0
        if self.every:
            return step - (step - self.first) % self.every
        return self.first << ((step // self.first).bit_length() - 1)

    def judge(self, place: Standing, rungs: Rungs) -> Verdict:
        scores = dict(rungs.get(place.level, {}))
        own = scores.pop(place.run, None)
        if own is None or len(scores) < self.others:
            return Go()
        middle = statistics.median(scores.values())
        return Stop(f"below the median at step {place.level}") if own < middle else Go()

    def promote(self, rungs: Rungs, paused: Sequence[str], *, over: bool) -> Resume | None:
        return None


# A run that has not become better for so many reports ends. It is judged by its own curve alone.


@dataclass(frozen=True)
class Patience:
    patience: int = 10  # reports
    delta: float = 0.0  # less than this is no improvement
    first: int = 0  # steps that it has in any case
    compares: bool = False
    pauses: bool = False

    def level(self, step: int, run: str) -> int:
        return step + 1 if step >= self.first else 0  # each report is judged, that of step 0 too

    def judge(self, place: Standing, rungs: Rungs) -> Verdict:
        since, best = 0, WORST
        for score in place.curve:
            since += 1
            if score > best + self.delta or (best == WORST and score > WORST):
                since, best = 0, score
        return Stop(f"no better for {since} reports") if since >= self.patience else Go()

    def promote(self, rungs: Rungs, paused: Sequence[str], *, over: bool) -> Resume | None:
        return None


# Several halvings beside each other, each with a later first level: for curves that cross.
#
# A run belongs to one bracket for good, by its number, and is compared within it alone. Bracket s begins at
# min·factor^s; so many runs belong to it that all brackets spend about the same.


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

    def judge(self, place: Standing, rungs: Rungs) -> Verdict:
        bracket = self.bracket(place.run)
        return self._asha(bracket).judge(place, self._within(bracket, rungs))

    def promote(self, rungs: Rungs, paused: Sequence[str], *, over: bool) -> Resume | None:
        for bracket in range(self.brackets):
            waiting = [run for run in paused if self.bracket(run) == bracket]
            resume = self._asha(bracket).promote(self._within(bracket, rungs), waiting, over=over)
            if resume:
                return resume
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
