"""The best value of a metric so far. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec.ranking import GOALS


@dataclass(frozen=True)
class Best:
    metric: str
    goal: str = "max"
    value: float | None = None
    step: int | None = None
    number: int = 0  # how often it was bettered: what its state is kept under

    def after(self, value: float, step: int) -> Best:
        """With this value, if it is better than the best: the first one is, NaN never."""
        if math.isnan(value):
            return self
        best = self.value
        if best is None or (value > best if self.goal == "max" else value < best):
            return replace(self, value=value, step=step, number=self.number + 1)
        return self

    def state(self) -> dict[str, Any]:
        return {"goal": self.goal, "value": self.value, "step": self.step, "number": self.number}


def best_of(metric: str, goal: str, number: int = 0) -> Best:
    if goal not in GOALS:
        raise UsageError(f"goal={goal!r} is neither 'max' nor 'min'")
    return Best(metric, GOALS[goal], number=number)


def load(state: Mapping[str, Any]) -> dict[str, Best]:
    return {name: Best(name, **row) for name, row in state.items()}
