"""Numbers of numpy's, computed without numpy: int64 and float64, in one row or single.

The arithmetic is numpy's where it differs from Python's: a whole number to a negative power is an error,
`arange` and `linspace` round as numpy does. What numpy would wrap around or turn into inf or nan is a
ValueError instead. Whole numbers stay below 2**53, where both kinds of number agree.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from hostler.frozen import dataclass

LONGEST = 10_000  # numbers of one row
_LARGEST = 2**53
_FARTHEST = 300  # decimals to round to

Plain = int | float


@dataclass(frozen=True)
class Numbers:
    """A row of int64 (`whole`) or float64; `single` is one number that came out of such a row."""

    values: tuple[Plain, ...]
    whole: bool
    single: bool = False

    @property
    def value(self) -> Plain:
        """A single number, as Python has it."""
        return self.values[0]

    def singles(self) -> Iterator[Numbers]:
        """The numbers of a row, each still one of numpy's."""
        return (Numbers((value,), self.whole, single=True) for value in self.values)

    def item(self, at: int | slice) -> Numbers:
        if isinstance(at, slice):
            return Numbers(self.values[at], self.whole)
        return Numbers((self.values[at],), self.whole, single=True)

    def as_type(self, name: str) -> Numbers:
        """`.astype(int)` or `.astype(float)`."""
        kind: Callable[[Plain], Plain] = {"int": int, "float": float}[name]
        return Numbers(tuple(kind(value) for value in self.values), name == "int", self.single)

    def each(self, function: Callable[[Plain], Plain]) -> Numbers:
        """The same function of every number; it keeps their kind."""
        return _checked([function(value) for value in self.values], self.whole, self.single)


def numbers(value: Any) -> Numbers:
    """A number or a list of numbers as numpy takes it."""
    if isinstance(value, Numbers):
        return value
    if isinstance(value, (list, tuple, range)):
        parts = [numbers(item) for item in value]
        if any(not part.single for part in parts):
            raise ValueError("rows of rows are not read")
        return _checked([part.value for part in parts], all(part.whole for part in parts), single=False)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{value!r} is not a number")
    return _checked([value], isinstance(value, int), single=True)


def agree(left: Any, right: Any) -> bool:
    """Whether numpy computes with both: a list goes with a row, and not with a single number."""
    single = any(isinstance(value, Numbers) and value.single for value in (left, right))
    return not (single and any(isinstance(value, (list, tuple, range)) for value in (left, right)))


def combine(sign: str, left: Any, right: Any) -> Numbers:
    """`left sign right`, number by number; one number goes with every number of a row."""
    one, other = numbers(left), numbers(right)
    size = max(len(one.values), len(other.values)) if one.values and other.values else 0
    if {len(one.values), len(other.values)} - {1, size}:
        raise ValueError(f"rows of {len(one.values)} and {len(other.values)} numbers do not go together")
    whole = one.whole and other.whole and sign != "/"
    function = _whole_power if whole and sign == "**" else _SIGNS[sign]
    kind: Callable[[Plain], Plain] = int if whole else float
    pairs = zip(_spread(one, size), _spread(other, size), strict=True)
    return _checked([function(kind(a), kind(b)) for a, b in pairs], whole, one.single and other.single)


def arange(*ends: Any) -> Numbers:
    """numpy's `arange`: its second number decides the distance of all."""
    if not 1 <= len(ends) <= 3:
        raise TypeError("arange takes one to three numbers")
    given = [_one(end) for end in ends]
    start, stop, step = (0, given[0], 1) if len(given) == 1 else (*given, 1)[:3]
    whole = all(isinstance(value, int) for value in given)
    count = _bounded(math.ceil((stop - start) / step))
    if whole:
        return _checked([start + n * step for n in range(count)], whole, single=False)
    first = float(start)
    second = first + step
    values = [first + n * (second - first) for n in range(count)]
    values[1:2] = [second][: len(values) - 1]
    return _checked(values, whole, single=False)


def linspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True) -> Numbers:
    first, last, count = float(_one(start)), float(_one(stop)), _bounded(_index(num))
    gaps = count - 1 if endpoint else count
    step = (last - first) / gaps if gaps else math.nan
    if not gaps:
        values = [0.0 * (last - first) + first] * count
    elif step:
        values = [n * step + first for n in range(count)]
    else:
        values = [n / gaps * (last - first) + first for n in range(count)]
    if endpoint and count > 1:
        values[-1] = last
    return _checked(values, whole=False, single=False)


def logspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True, base: Any = 10.0) -> Numbers:
    return combine("**", float(_one(base)), linspace(start, stop, num, endpoint))


def geomspace(start: Any, stop: Any, num: Any = 50, endpoint: Any = True) -> Numbers:
    first, last = float(_one(start)), float(_one(stop))
    if first * last <= 0:
        raise ValueError("both ends of geomspace must be above 0, or both below")
    sign = math.copysign(1.0, first)
    powers = logspace(math.log10(first * sign), math.log10(last * sign), num, endpoint)
    values = [value * sign for value in powers.values]
    values[:1] = [first][: len(values)]
    if endpoint and len(values) > 1:
        values[-1] = last
    return _checked(values, whole=False, single=False)


def power(left: Any, right: Any) -> Numbers:
    return combine("**", left, right)


def rounded(value: Any, decimals: Any = 0) -> Numbers:
    """numpy's `round`: scaled, rounded to the even neighbour, scaled back; Python's can differ in a digit."""
    given, places = numbers(value), _index(decimals)
    if abs(places) > _FARTHEST:
        raise ValueError(f"{places} decimals are too many")
    if given.whole:
        if places < 0:
            raise ValueError("whole numbers of a row are not rounded to tens")
        return given
    scale = 10.0 ** abs(places)
    if places < 0:
        return given.each(lambda one: round(one / scale) * scale)
    return given.each(lambda one: round(one * scale) / scale)


def _one(value: Any) -> Plain:
    given = numbers(value)
    if not given.single:
        raise TypeError("a row stands where one number is needed")
    return given.value


def _index(value: Any) -> int:
    found = _one(value)
    if not isinstance(found, int):
        raise TypeError(f"{found!r} is not a whole number")
    return found


def _bounded(count: int) -> int:
    if count > LONGEST:
        raise ValueError(f"{count:,} numbers; at most {LONGEST:,} are allowed in one row")
    return max(0, count)


def _spread(row: Numbers, size: int) -> Sequence[Plain]:
    return row.values * size if len(row.values) == 1 else row.values


def _checked(values: Sequence[Plain], whole: bool, single: bool) -> Numbers:
    kind: Callable[[Plain], Plain] = int if whole else float
    found = tuple(kind(value) for value in values)
    for value in found:
        if abs(value) > _LARGEST if whole else not math.isfinite(value):
            raise ValueError("too large a number")
    return Numbers(found, whole, single)


def _whole_power(base: Plain, exponent: Plain) -> Plain:
    if exponent < 0:
        raise ValueError("numpy takes no negative power of a whole number: write 2.0 for 2")
    if abs(base) > 1 and exponent > 53:
        raise ValueError("too large a number")
    return base**exponent


def _power(base: Plain, exponent: Plain) -> Plain:
    found: Any = base**exponent
    if isinstance(found, complex):
        raise ValueError("not a real number")
    return float(found)


_SIGNS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": _power,
}
