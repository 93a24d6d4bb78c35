"""A run that has not become better for so many reports ends. It is judged by its own curve alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hostler.search.base import WORST, Go, Place, Resume, Rungs, Stop, Verdict


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
