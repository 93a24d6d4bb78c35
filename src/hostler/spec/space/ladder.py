"""Rows of numbers, exact: start, step and count; start, factor and count; evenly spaced between two ends.

Whole numbers stay whole. Other numbers are computed as the decimals they are written as, so that
0.1 + 2 · 0.1 is 0.3, and every machine gets the same bits. Errors are ValueErrors of one line.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Context, Decimal, Overflow
from fractions import Fraction

Number = int | float

LONGEST = 1_000_000  # values of one row
_DIGITS = 4000  # longer whole numbers cannot be read back
_EXACT = Context(prec=50, traps=[Overflow])


def steps(start: Number, step: Number, count: int) -> Sequence[Number]:
    """start, start + step, start + 2·step …"""
    _check(count)
    if _whole(start, step):
        return range(int(start), int(start) + int(step) * count, int(step)) if step else [start] * count
    first, each = decimal(start), decimal(step)
    return [_float(_EXACT.add(first, _EXACT.multiply(each, Decimal(k)))) for k in range(count)]


def factors(start: Number, factor: Number, count: int) -> Sequence[Number]:
    """start, start · factor, start · factor² …"""
    _check(count)
    if _whole(start, factor):
        if abs(factor) > 1 and count * math.log10(abs(factor)) > _DIGITS:
            raise ValueError("grows beyond what a number can hold")
        return [int(start) * int(factor) ** k for k in range(count)]
    first, each, found = decimal(start), decimal(factor), []
    for _ in range(count):
        found.append(_float(first))
        first = _EXACT.multiply(first, each)
    return found


def between(low: Number, high: Number, count: int) -> Sequence[float]:
    """`count` values from low to high, both among them."""
    return [_float(value) for value in _between(decimal(low), decimal(high), count)]


def powers(low: Number, high: Number, count: int) -> Sequence[float]:
    """`count` powers of ten, from 10^low to 10^high."""
    exponents = _between(decimal(low), decimal(high), count)
    return [_float(_EXACT.power(Decimal(10), exponent)) for exponent in exponents]


def geometric(low: Number, high: Number, count: int) -> Sequence[float]:
    """`count` values from low to high, each the same multiple of the one before."""
    if min(low, high) <= 0:
        raise ValueError("both ends must be above 0")
    first, ratio = decimal(low), _EXACT.divide(decimal(high), decimal(low))
    parts = _between(Decimal(0), Decimal(1), count)
    return [_float(_EXACT.multiply(first, _EXACT.power(ratio, part))) for part in parts]


def _between(low: Decimal, high: Decimal, count: int) -> list[Decimal]:
    _check(count)
    span, gaps = _EXACT.subtract(high, low), Decimal(max(1, count - 1))
    parts = (_EXACT.divide(_EXACT.multiply(span, Decimal(k)), gaps) for k in range(count))
    return [_EXACT.add(low, part) for part in parts]


def inside(low: Number, high: Number, step: Number) -> int:
    """How many of low, low + step … are not above high."""
    ends = Fraction(decimal(high)) - Fraction(decimal(low))
    return int(ends // Fraction(decimal(step))) + 1


def decimal(value: Number) -> Decimal:
    """A number as it is written: 0.1 is a tenth."""
    return Decimal(value) if isinstance(value, int) else Decimal(repr(float(value)))


def _float(value: Decimal) -> float:
    found = float(value)
    if not math.isfinite(found):
        raise ValueError("grows beyond what a number can hold")
    return found


def _whole(*values: Number) -> bool:
    return all(isinstance(value, int) for value in values)


def _check(count: int) -> None:
    if not 1 <= count <= LONGEST:
        raise ValueError(f"{count:,} values; from 1 to {LONGEST:,} are allowed in one row")
