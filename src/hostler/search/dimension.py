"""One thing a sampler chooses: a number between two bounds, or one of so many."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Picks = Mapping[str, Any]  # by dimension: a number, or which one of so many


@dataclass(frozen=True)
class Dimension:
    name: str
    kind: str  # float | int | choice
    low: float = 0
    high: float = 0
    log: bool = False
    step: float | None = None
    choices: int = 0
    active: Callable[[Picks], bool] | None = None  # given what was picked before it; None: always


def conditional(dimension: Dimension) -> bool:
    return dimension.active is not None
