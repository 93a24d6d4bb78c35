"""Decides when to stop early and which row is best. Pure over the rows so far."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from hostler.errors import SpecError
from hostler.frozen import dataclass
from hostler.spec.ranking import GOALS

LESS_IS_BETTER = re.compile(r"loss|error|perplexity|time", re.IGNORECASE)
Row = Mapping[str, float]


@dataclass(frozen=True)
class WatchedColumns:
    """The columns that best checkpoints and patience go by. The best of a row is the best of them; patience
    has run out when it has for each."""

    columns: tuple[str, ...]
    goal: str  # max | min

    def best_of(self, row: Row) -> tuple[str, float] | None:
        """(column, value); None where none of them is a number."""
        found = [(name, row[name]) for name in self.columns if not math.isnan(row.get(name, math.nan))]
        best = max if self.goal == "max" else min
        return best(found, key=lambda one: one[1]) if found else None

    def is_best(self, rows: Sequence[Row]) -> bool:
        """Whether the last row is better than all before it."""
        values = [best[1] for row in rows if (best := self.best_of(row)) is not None]
        if not values or not rows or self.best_of(rows[-1]) is None:
            return False
        return all(self._better(values[-1], value) for value in values[:-1])

    def ran_out(self, rows: Sequence[Row], patience: int | None) -> bool:
        curves = [[row[name] for row in rows if name in row] for name in self.columns]
        return bool(curves) and all(ran_out(values, patience, self.goal) for values in curves)

    def _better(self, one: float, other: float) -> bool:
        return one > other if self.goal == "max" else one < other


def watched(columns: Sequence[str], metric: str, goal: str | None) -> WatchedColumns:
    """The columns that the regular expression matches."""
    try:
        pattern = re.compile(metric)
    except re.error as error:
        raise SpecError(
            f"best_checkpoint_metric {metric!r} is not a regular expression: {error}", hint="test/.*/accuracy"
        ) from None
    return WatchedColumns(tuple(name for name in columns if pattern.search(name)), goal_of(metric, goal))


def goal_of(metric: str, given: str | None) -> str:
    return GOALS[given] if given else "min" if LESS_IS_BETTER.search(metric) else "max"


def ran_out(values: Sequence[float], patience: int | None, goal: str) -> bool:
    """Whether the best of the last `patience` values is worse than the best so far; a NaN is worse
    than any."""
    if patience is None or len(values) <= patience:
        return False
    sign = 1 if goal == "max" else -1
    ranked = [-math.inf if math.isnan(value) else sign * value for value in values]
    return max(ranked[-patience:]) < max(ranked)


def has_diverged(loss: float, most: float) -> bool:
    return not math.isfinite(loss) or loss > most
