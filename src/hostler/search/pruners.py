"""The pruner that a sweep's `prune:` names."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from hostler.search.asha import Asha
from hostler.search.base import WORST, Go, Place, Pruner, Resume, Rungs, Stop, Verdict
from hostler.search.hyperband import Hyperband
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

    def judge(self, place: Place, rungs: Rungs) -> Verdict:
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

    def judge(self, place: Place, rungs: Rungs) -> Verdict:
        since, best = 0, WORST
        for score in place.curve:
            since += 1
            if score > best + self.delta or (best == WORST and score > WORST):
                since, best = 0, score
        return Stop(f"no better for {since} reports") if since >= self.patience else Go()

    def promote(self, rungs: Rungs, paused: Sequence[str], *, over: bool) -> Resume | None:
        return None
