"""Runs of one sweep as columns: their facts and parameters in one table, their curves as slices of the
segments they came in, which are never copied."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from hostler.records.series import merging
from hostler.records.series.columns import Column, fits_a_block, values
from hostler.records.series.curve_columns import Track
from hostler.records.series.segments import Segment

Array = Any  # numpy.ndarray: installed only where frames are made


class SegmentStack:
    """Segments one on the other, and which of their rows count, in order."""

    def __init__(
        self,
        sweep: str,
        parts: Sequence[Segment],
        order: Sequence[int],
        long: Callable[[str], Sequence[Track]] = lambda run: (),
    ) -> None:
        """`long` reads the curves of a run that are in no part."""
        self._parts, self._long = parts, long
        whole = len(parts) == 1
        self._table = parts[0] if whole else merging.table(sweep, parts)
        self.order: Array = np.asarray(order, dtype=np.int64)
        self._straight = len(order) == self._table.rows and bool((self.order == np.arange(len(order))).all())
        self._groups: list[_CurveGroup] | None = None
        self._shared: dict[
            tuple[str, tuple[int, ...]], Array
        ] = {}  # steps and times, by the groups they are of
        self._apart: dict[int, Sequence[Track]] | None = None

    def __len__(self) -> int:
        return len(self.order)

    def names(self, table: str) -> list[str]:
        return list(self._table.header[table])

    def column(self, table: str, name: str) -> Any:
        """A numpy array where all are numbers of one kind, else a list; NaN where a row has none."""
        found = self._table.header[table].get(name)
        if found is None:
            return [math.nan] * len(self)
        rows, column = found
        if rows is None:
            return self._ordered(self._dense(column))
        cells: list[Any] = [math.nan] * self._table.rows
        for n, cell in zip(rows, values(column, len(rows), self._table.blocks), strict=True):
            cells[n] = cell
        return self._ordered(cells)

    def runs(self) -> list[str]:
        return list(self._ordered(self._table.runs))

    def total(self, metric: str, part: str) -> Array:
        """last, min, max, step or max_step of a metric: floats, NaN where a run has none."""
        found = self._table.header["totals"].get(metric)
        cells = np.full(self._table.rows, np.nan)
        if found is not None and part in found:
            numbers = self._numbers(found[part], self._table)
            cells[slice(None) if found["rows"] is None else found["rows"]] = numbers
        return cells[self.order]

    def metrics(self) -> list[str]:
        return list(self._table.header["totals"])

    def curve(self, metric: str, what: str) -> Array:
        """steps, times or values of each run's curve, as an array of arrays; empty where it has none. Metrics
        that were logged together share the arrays of their steps and times."""
        there = tuple(n for n, group in enumerate(self._all_groups()) if metric in group.names)
        if what == "values" or self._all_apart():
            return self._curve(metric, what, there)
        if (what, there) not in self._shared:
            self._shared[what, there] = self._curve(metric, what, there)
        return self._shared[what, there]

    def _curve(self, metric: str, what: str, groups: Sequence[int]) -> Array:
        cells = [_NONE[what]] * self._table.rows
        for group in (self._all_groups()[n] for n in groups):
            if isinstance(group.rows, slice):
                cells[group.rows] = group.cells(metric, what)
                continue
            for n, cell in zip(group.rows, group.cells(metric, what), strict=True):
                cells[n] = cell
        for n, tracks in self._all_apart().items():
            for track in tracks:
                if metric in track.values:
                    cells[n] = np.asarray(track.values[metric] if what == "values" else getattr(track, what))
        return np.fromiter(self._ordered(cells), dtype=object, count=len(self))

    def flat(self, metric: str) -> tuple[Array, Array, Array, Array]:
        """(counts in order of runs, steps, times, values) of a metric, one run after the other."""
        parts = [self.curve(metric, what) for what in ("steps", "times", "values")]
        counts = np.fromiter(map(len, parts[0]), dtype=np.int64, count=len(self))
        joined = [np.concatenate([*part, _NONE[what]]) for part, what in zip(parts, _NONE, strict=True)]
        return counts, joined[0], joined[1], joined[2]

    def _ordered(self, cells: Any) -> Any:
        if self._straight:
            return cells
        return cells[self.order] if isinstance(cells, np.ndarray) else [cells[n] for n in self.order.tolist()]

    def _dense(self, column: Column) -> Any:
        if column[0] in ("f", "i"):
            return self._numbers(column, self._table)
        if column[0] == "all" and fits_a_block(column[1]):
            return np.full(self._table.rows, column[1])
        return values(column, self._table.rows, self._table.blocks)

    def _numbers(self, column: Column, part: Segment) -> Array:
        kind, place, count = column
        return np.frombuffer(part.blocks, "<f8" if kind == "f" else "<i8", count, place)

    def _all_apart(self) -> dict[int, Sequence[Track]]:
        """row → curves, of runs that count and whose curves are in no part: read when first asked for."""
        if self._apart is None:
            apart = set(self._table.header["apart"])
            wanted = [n for n in self.order.tolist() if n in apart] if apart else []
            self._apart = {n: self._long(self._table.runs[n]) for n in wanted}
        return self._apart

    def _all_groups(self) -> list[_CurveGroup]:
        if self._groups is None:
            self._groups, base = [], 0
            for part in self._parts:
                self._groups += [_CurveGroup(group, part, base) for group in part.header["tracks"]]
                base += part.rows
        return self._groups


_NONE: dict[str, Array] = {
    "steps": np.empty(0, np.int64),
    "times": np.empty(0, np.float64),
    "values": np.empty(0, np.float64),
}


class _CurveGroup:
    """Curves of one part whose metrics share their steps."""

    def __init__(self, group: Mapping[str, Any], part: Segment, base: int) -> None:
        self._group, self._blocks = group, part.blocks
        self.names = frozenset(group["names"])
        self.rows = _rows(group["rows"], base)
        self._shared: dict[str, list[Array]] = {}

    def cells(self, metric: str, what: str) -> list[Array]:
        if what == "values":
            return self._cut(self._group["values"][self._group["names"].index(metric)], "<f8")
        if what not in self._shared:
            self._shared[what] = self._cut(self._group[what], "<i8" if what == "steps" else "<f8")
        return self._shared[what]

    def _cut(self, column: Column, kind: str) -> list[Array]:
        counts = self._group["counts"]
        whole = np.frombuffer(self._blocks, kind, column[2], column[1])
        if counts and counts[0] and counts.count(counts[0]) == len(counts):
            return list(whole.reshape(len(counts), counts[0]))
        ends = np.cumsum(counts).tolist()
        return [whole[end - count : end] for end, count in zip(ends, counts, strict=True)]


def _rows(listed: list[int], base: int) -> slice | list[int]:
    """These rows of a part, counted through all parts; mostly they follow each other."""
    first, count = listed[0] if listed else 0, len(listed)
    if listed == [*range(first, first + count)]:
        return slice(base + first, base + first + count)
    return [base + n for n in listed]
