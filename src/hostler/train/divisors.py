"""The numbers that divide another, found by as many tries as its root is large. Pure."""

from __future__ import annotations

import math


def divisors(number: int) -> list[int]:
    """From 1 on."""
    low = [one for one in range(1, math.isqrt(number) + 1) if number % one == 0]
    return [*low, *(number // one for one in reversed(low) if one * one != number)]
