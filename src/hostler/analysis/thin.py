"""Thins a long curve to few points that look the same: each stretch keeps its extremes and its last."""

from __future__ import annotations

import math
from collections.abc import Sequence

MOST = 400


def thin(xs: Sequence[float], ys: Sequence[float], most: int = MOST) -> tuple[list[float], list[float]]:
    """At most about `most` points of them, in order; the first and the last always. Pure."""
    order = kept(ys, most)
    return [xs[i] for i in order], [ys[i] for i in order]


def kept(ys: Sequence[float], most: int) -> Sequence[int]:
    """Places of the points that stay."""
    if len(ys) <= most:
        return range(len(ys))
    stretches = max(1, most // 3)
    places = {0, len(ys) - 1}
    for n in range(stretches):
        begin, end = n * len(ys) // stretches, (n + 1) * len(ys) // stretches
        places |= _telling(ys, begin, end)
    return sorted(places)


def _telling(ys: Sequence[float], begin: int, end: int) -> set[int]:
    """Places of a stretch's extremes and its last point; a value that is not a number is kept as a gap."""
    numbers = [i for i in range(begin, end) if math.isfinite(ys[i])]
    if not numbers:
        return {begin, end - 1} if end > begin else set()
    found = {min(numbers, key=ys.__getitem__), max(numbers, key=ys.__getitem__), end - 1}
    odd = next((i for i in range(begin, end) if not math.isfinite(ys[i])), None)
    return found if odd is None else {*found, odd}
