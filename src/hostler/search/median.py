"""A run whose best score is below the median of the others at the same level ends."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from hostler.search.base import Go, Place, Resume, Rungs, Stop, Verdict


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
