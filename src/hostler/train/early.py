"""When to stop before the end: no progress for a while, or a loss that runs away. Pure over the rows so
far."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

LESS_IS_BETTER = re.compile(r"loss|error|perplexity|time", re.IGNORECASE)


def goal_of(metric: str, given: str | None) -> str:
    return given or ("min" if LESS_IS_BETTER.search(metric) else "max")


def column(columns: Sequence[str], metric: str) -> str | None:
    """The first that the regular expression fits wholly."""
    pattern = re.compile(metric)
    return next((name for name in columns if pattern.fullmatch(name)), None)


def ran_out(values: Sequence[float], patience: int | None, goal: str) -> bool:
    """Whether the best of the last `patience` values is worse than the best so far."""
    if patience is None or len(values) <= patience:
        return False
    best = max if goal == "max" else min
    return best(values[-patience:]) != best(values)


def has_diverged(loss: float, most: float) -> bool:
    return math.isnan(loss) or loss > most
