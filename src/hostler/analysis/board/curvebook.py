"""Curves of runs for the page: read once if a run has ended, extended while it goes on, thinned.

A curve is three columns of numbers. They travel to the page as they lie in memory, behind a header of JSON:

    u32 length of the header · header · for each of its curves: n × f64 places, n × f64 values

so that a page gets two hundred curves of ten thousand points without taking a text apart.
"""

from __future__ import annotations

import math
import struct
import sys
import threading
from array import array
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from hostler.analysis.curves import points
from hostler.analysis.plain import dumps
from hostler.analysis.thin import kept
from hostler.errors import HostlerError
from hostler.frozen import dataclass
from hostler.records.rows import Row
from hostler.records.series import metrics
from hostler.records.series.metrics import FragmentCache
from hostler.records.series.points import Point
from hostler.spec.states import ENDED
from hostler.store import Store

KEPT = 6_000_000  # points of ended runs that stay in memory
LONG = 10_000  # points of a curve that a page gets; of a longer one those that show its shape
STEP, TIME = "step", "time"  # along which a curve runs; anything else is a metric of the same run


@dataclass(frozen=True)
class Curve:
    """A metric of one run. `total` is how many points it had before it was thinned."""

    steps: Sequence[float]
    times: Sequence[float]
    values: Sequence[float]
    total: int

    def thinned(self, most: int) -> Curve:
        if len(self.values) <= most:
            return self
        order = kept(self.values, most)
        steps, times, values = (_picked(one, order) for one in (self.steps, self.times, self.values))
        return Curve(steps, times, values, self.total)


def _picked(cells: Sequence[float], order: Sequence[int]) -> Sequence[float]:
    return array("d", (cells[i] for i in order))


class CurveBook:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._ended: OrderedDict[tuple[str, int], dict[str, Curve]] = OrderedDict()
        self._size = 0
        self._open: dict[str, FragmentCache] = {}
        self._lock = threading.Lock()

    def names(self, rows: Iterable[Row]) -> list[str]:
        return sorted({name for row in rows for name in row.metrics})

    def curves(self, rows: Sequence[Row], metric: str, most: int) -> dict[str, Any]:
        """run → its curve of this metric; what cannot be read is named."""
        found, trouble = self._read(rows, metric, STEP, most)
        as_lists = {
            run: {"x": list(x), "y": list(y), "points": total} for run, (x, y, total) in found.items()
        }
        return {"metric": metric, "curves": as_lists, "trouble": trouble}

    def packed(self, rows: Sequence[Row], metric: str, along: str) -> bytes:
        """The same as columns of numbers, by step (or ""), time or another metric."""
        along = along or STEP
        found, trouble = self._read(rows, metric, along, LONG)
        counts = [[run, len(x), total] for run, (x, _, total) in found.items()]
        head = dumps({"metric": metric, "along": along, "curves": counts, "trouble": trouble})
        head += b" " * (-(len(head) + 4) % 8)  # numbers begin at a multiple of their size
        columns = (_little(column) for x, y, _ in found.values() for column in (x, y))
        return b"".join([struct.pack("<I", len(head)), head, *columns])

    def _read(
        self, rows: Sequence[Row], metric: str, along: str, most: int
    ) -> tuple[dict[str, tuple[Sequence[float], Sequence[float], int]], dict[str, str]]:
        found, trouble = {}, {}
        for row in rows:
            try:
                every = self.of(row)
            except (HostlerError, OSError) as error:
                trouble[row.id] = str(error)
                continue
            if curve := every.get(metric):
                thinned = curve.thinned(most)
                found[row.id] = _places(thinned, every, along), thinned.values, curve.total
        return found, trouble

    def of(self, row: Row) -> dict[str, Curve]:
        """All curves of a run."""
        if row.state not in ENDED:
            with self._lock:
                cache = self._open.setdefault(row.id, FragmentCache())
                return _by_metric(metrics.read(self._store, row.id, NEWEST, cache=cache))
        key = (row.id, row.attempt)
        with self._lock:
            self._open.pop(row.id, None)
            if key in self._ended:
                self._ended.move_to_end(key)
                return self._ended[key]
        made = {name: curve.thinned(LONG) for name, curve in _by_metric(points(self._store, row)).items()}
        with self._lock:
            if key not in self._ended:
                self._ended[key] = made
                self._size += _size(made)
            while self._size > KEPT and len(self._ended) > 1:
                self._size -= _size(self._ended.popitem(last=False)[1])
        return made


NEWEST = 1 << 40  # an attempt's number beyond all


def _size(curves: dict[str, Curve]) -> int:
    return sum(len(curve.values) for curve in curves.values())


def _by_metric(found: Iterable[Point]) -> dict[str, Curve]:
    columns: dict[str, tuple[array[float], array[float], array[float]]] = {}
    for point in found:
        for name, value in point.values.items():
            steps, times, values = columns.setdefault(name, (array("d"), array("d"), array("d")))
            steps.append(point.step)
            times.append(point.time)
            values.append(value)
    return {name: Curve(*three, len(three[0])) for name, three in columns.items()}


def _places(curve: Curve, every: dict[str, Curve], along: str) -> Sequence[float]:
    """Where the points of a curve lie: at a step, at a time, or at another metric's newest value. Pure."""
    if along == STEP:
        return curve.steps
    if along == TIME:
        return curve.times
    other, at, now = every.get(along), 0, math.nan
    places = array("d")
    for step in curve.steps:
        while other and at < len(other.steps) and other.steps[at] <= step:
            now, at = other.values[at], at + 1
        places.append(now)
    return places


def _little(column: Sequence[float]) -> bytes:
    """Numbers as bytes, the lowest first."""
    cells = array("d", column)
    if sys.byteorder == "big":
        cells.byteswap()
    return cells.tobytes()
