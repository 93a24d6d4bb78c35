"""Parses `momentum`: one number, or `b1,b2` for Adam. Pure."""

from __future__ import annotations

import math

from hostler.errors import SpecError


def one(momentum: float | str) -> float:
    """As SGD takes it."""
    try:
        found = float(momentum)
    except ValueError:
        raise SpecError(f"momentum {momentum!r} is not a number", hint="'b1,b2' is for Adam") from None
    if not 0 <= found < math.inf:
        raise SpecError(f"momentum is {momentum}, but must be at least 0", hint="0 switches it off")
    return found


def betas(momentum: float | str) -> tuple[float, float]:
    """As Adam takes it: both in [0, 1); the second is 0.999 unless told."""
    given = momentum.split(",") if isinstance(momentum, str) else (momentum, 0.999)
    try:
        first, second = (float(part) for part in given)
    except ValueError:
        raise SpecError(f"momentum {momentum!r} is not 'b1,b2'", hint="for example '0.9,0.999'") from None
    if not (0 <= first < 1 and 0 <= second < 1):
        raise SpecError(f"momentum {momentum!r}: Adam's are in [0, 1)", hint="for example '0.9,0.999'")
    return first, second
