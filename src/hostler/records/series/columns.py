"""Columns of values as bytes: JSON for what is mixed, blocks of numbers that a reader takes as they lie.

A column is one of
    ["all", value]            the same in every row
    ["f", offset, count]      64-bit floats, at this place of the blocks
    ["i", offset, count]      64-bit integers
    ["j", [values]]           anything JSON holds
    ["t", text]               texts with `|` between them: only caches have them, which are read more quickly
A float is never an integer here, and True is not 1: what comes out has the type that went in.
"""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Sequence
from typing import Any

Column = list[Any]

_LARGEST = 2**63
_BETWEEN = "|"  # JSON has it as it is
_PLAIN = (str, int, bool, type(None))


class Blocks:
    """The numbers of many columns, one after the other; each begins at a multiple of eight."""

    def __init__(self) -> None:
        self.parts: list[bytes | memoryview] = []
        self._size = 0

    def floats(self, values: Iterable[float]) -> Column:
        return self._add("f", array("d", values))

    def integers(self, values: Iterable[int]) -> Column:
        return self._add("i", array("q", values))

    def joined(self, kind: str, parts: Sequence[Any]) -> Column:
        """Arrays of 8-byte numbers, none of them empty, one after the other."""
        return self.raw(kind, [memoryview(part).cast("B") for part in map(_little, parts)])

    def raw(self, kind: str, parts: Sequence[bytes | memoryview]) -> Column:
        """Numbers as they lie in other blocks, one after the other."""
        place, size = self._size, sum(map(len, parts))
        self.parts += parts
        self._size += size
        return [kind, place, size // 8]

    def column(self, values: Sequence[Any]) -> Column:
        """Column of any values."""
        kinds = set(map(type, values))
        if len(kinds) == 1:
            kind = next(iter(kinds))
            if kind in _PLAIN and all(value == values[0] for value in values):
                return ["all", values[0]]
            if kind is float:
                return self.floats(values)
            if kind is int and all(-_LARGEST <= value < _LARGEST for value in values):
                return self.integers(values)
        return ["j", list(values)]

    def _add(self, kind: str, values: array[Any]) -> Column:
        return self.raw(kind, [_little(values).tobytes()])


def as_text(column: Column) -> Column:
    """The same column as one text, where it is a list of texts."""
    if column[0] != "j":
        return column
    try:
        text = _BETWEEN.join(column[1])
    except TypeError:
        return column
    return ["t", text] if text.count(_BETWEEN) == len(column[1]) - 1 else column


def fits_a_block(value: Any) -> bool:
    """Whether it is a number as blocks have them."""
    return type(value) is float or (type(value) is int and -_LARGEST <= value < _LARGEST)


def values(column: Column, rows: int, blocks: memoryview) -> list[Any]:
    """Values of a column of so many rows."""
    if column[0] == "all":
        return [column[1]] * rows
    if column[0] == "j":
        return list(column[1])
    if column[0] == "t":
        return list(column[1].split(_BETWEEN))
    found: list[Any] = numbers(column, blocks).tolist()
    return found


def numbers(column: Column, blocks: memoryview) -> array[Any]:
    """A column of numbers alone."""
    kind, place, count = column
    found: array[Any] = array("d" if kind == "f" else "q")
    found.frombytes(blocks[place : place + 8 * count])
    swapped: array[Any] = _little(found)
    return swapped


def check(column: Column, rows: int, size: int, kinds: str = "fijta") -> None:
    """Raises unless it is a column of so many rows, in blocks of so many bytes. `kinds`: first letters of
    those that it may be."""
    kind = column[0]
    if kind in ("f", "i") and kind in kinds:
        _, place, count = column
        fits = type(place) is int and count == rows and 0 <= place <= size - 8 * count
    elif kind == "j" and kind in kinds:
        fits = type(column[1]) is list and len(column[1]) == rows
    elif kind == "t" and kind in kinds:
        fits = type(column[1]) is str and column[1].count(_BETWEEN) == rows - 1
    else:
        fits = kind == "all" and "a" in kinds and len(column) == 2
    if not fits:
        raise ValueError(kind)


def _little(numbers: Any) -> Any:
    """As they lie in a block, or back again: the lowest byte first."""
    if sys.byteorder == "little" or not isinstance(numbers, array):
        return numbers
    other = numbers[:]
    other.byteswap()
    return other
