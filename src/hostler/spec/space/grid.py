"""The product of axes: its size without enumeration, its nth cell directly, all cells fast.

The last axis turns fastest. A LIST is one axis: the products of its tables, one after the other, equal
ones once. Parameters whose conditions name one another are one axis too: the combinations that can be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

from hostler.frozen import dataclass
from hostler.spec.space.distribution import finite
from hostler.spec.space.entry import (
    Branches,
    Constant,
    Derived,
    Flat,
    Normal,
    Range,
    SpaceEntry,
    Table,
    Values,
    Zipped,
    holds,
    keys_of,
)
from hostler.spec.space.fault import Fault, Path
from hostler.spec.space.value import written

ROWS = 1_000_000  # cells of one LIST, or of one group of conditional parameters
_BLOCK = 2048  # cells held at once


@dataclass(frozen=True)
class GridColumn:
    """An axis of one parameter."""

    key: str
    values: Sequence[Any]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, at: int) -> Flat:
        return {self.key: self.values[at]}


Axis = GridColumn | tuple[Flat, ...]


@dataclass(frozen=True)
class Grid:
    axes: tuple[Axis, ...]

    @property
    def size(self) -> int:
        return math.prod(len(axis) for axis in self.axes)

    def cell(self, index: int) -> dict[str, Any]:
        """The nth cell, flat; keys in the order of the axes."""
        places = []
        for axis in reversed(self.axes):
            index, at = divmod(index, len(axis))
            places.append(at)
        cell: dict[str, Any] = {}
        for axis, at in zip(self.axes, reversed(places), strict=True):
            cell.update(axis[at])
        return cell

    def cells(self) -> Iterator[dict[str, Any]]:
        """All cells in order. The last axes are combined once, and each cell is one union of two tables."""
        inner: list[dict[str, Any]] = [{}]
        remaining = len(self.axes)
        while remaining and len(inner) * len(self.axes[remaining - 1]) <= _BLOCK:
            remaining -= 1
            axis = self.axes[remaining]
            inner = [{**axis[at], **after} for at in range(len(axis)) for after in inner]
        for before in _combined(self.axes[:remaining], {}):
            for after in inner:
                yield before | after


def grid(table: Table) -> Grid:
    """The grid of a table; a Fault at the first parameter that has no finite number of values."""
    return Grid(tuple(_axis(group) for group in _groups(table)))


def is_finite(table: Table) -> bool:
    return all(
        all(is_finite(branch) for branch in entry.form.branches)
        if isinstance(entry.form, Branches)
        else not isinstance(entry.form, Normal) and (not isinstance(entry.form, Range) or finite(entry.form))
        for entry in table
    )


def _combined(axes: Sequence[Axis], before: dict[str, Any]) -> Iterator[dict[str, Any]]:
    if not axes:
        yield before
        return
    axis = axes[0]
    for at in range(len(axis)):
        yield from _combined(axes[1:], {**before, **axis[at]})


def _groups(table: Table) -> list[list[SpaceEntry]]:
    """Entries that must be expanded together: each with those its condition names."""
    group_of = {id(entry): [entry] for entry in table}
    for entry in table:
        for owner in [e for key, _ in entry.when for e in table if key in keys_of(e.form)]:
            entries, space_entries = group_of[id(owner)], group_of[id(entry)]
            if entries is not space_entries:
                entries += space_entries
                group_of.update({id(member): entries for member in space_entries})
    place = {id(entry): n for n, entry in enumerate(table)}
    groups = {id(group): sorted(group, key=lambda e: place[id(e)]) for group in group_of.values()}
    return list(groups.values())


def _axis(group: list[SpaceEntry]) -> Axis:
    if len(group) == 1 and not group[0].when:
        return _alone(group[0])
    rows: list[dict[str, Any]] = [{}]
    for entry in group:
        axis = _alone(entry)
        met = [holds(entry.when, row) for row in rows]
        _check(sum(len(axis) if here else 1 for here in met), group[0].path)
        rows = [
            {**row, **axis[at]} if here else row
            for row, here in zip(rows, met, strict=True)
            for at in range(len(axis) if here else 1)
        ]
    return tuple(rows)


def _alone(entry: SpaceEntry) -> Axis:
    form = entry.form
    if isinstance(form, Constant):
        return GridColumn(form.key, (form.value,))
    if isinstance(form, Derived):
        return GridColumn(form.key, (form.expression,))
    if isinstance(form, Values):
        return GridColumn(form.key, form.values)
    if isinstance(form, Zipped):
        return form.rows
    if isinstance(form, Branches):
        return _branches(form, entry.path)
    values = finite(form) if isinstance(form, Range) else None
    if values is None:
        raise _endless(form, entry.path)
    return GridColumn(form.key, values)


def _endless(form: Range | Normal, path: Path) -> Fault:
    if isinstance(form, Range) and (form.whole or form.step):
        return Fault(path, "too many values for a grid", hint="a larger step, or method: random")
    return Fault(
        path,
        "a grid cannot go over a continuous range",
        hint="give values, a step or a count; or method: random",
    )


def _branches(form: Branches, path: Path) -> tuple[Flat, ...]:
    grids = [grid(branch) for branch in form.branches]
    _check(sum(one.size for one in grids), path)
    rows = {written(row): row for one in grids for row in one.cells()}
    return tuple(rows.values())


def _check(count: int, path: Path) -> None:
    if count > ROWS:
        raise Fault(
            path, f"{count:,} combinations in one axis; at most {ROWS:,} are allowed", hint="fewer values"
        )
