"""Curves of runs for the page: read once if a run has ended, extended while it goes on, thinned."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any

from hostler.analysis.curves import points
from hostler.analysis.thin import thin
from hostler.errors import HostlerError
from hostler.records.rows import Row
from hostler.records.series import metrics
from hostler.records.series.metrics import FragmentCache
from hostler.records.series.points import Point
from hostler.spec.states import ENDED
from hostler.store import Store

KEPT = 2000  # runs whose curves stay in memory

Curve = tuple[list[float], list[float], int]  # steps, values, and how many there were before it was thinned


class CurveBook:
    def __init__(self, store: Store) -> None:
        self._store = store
        self._ended: OrderedDict[tuple[str, int], dict[str, Curve]] = OrderedDict()
        self._open: dict[str, FragmentCache] = {}
        self._lock = threading.Lock()

    def names(self, rows: Iterable[Row]) -> list[str]:
        return sorted({name for row in rows for name in row.metrics})

    def curves(self, rows: Sequence[Row], metric: str, most: int) -> dict[str, Any]:
        """run → its curve of this metric; what cannot be read is named."""
        found, trouble = {}, {}
        for row in rows:
            try:
                curve = self.of(row).get(metric)
            except (HostlerError, OSError) as error:
                trouble[row.id] = str(error)
                continue
            if curve:
                steps, values = thin(curve[0], curve[1], most)
                found[row.id] = {"x": steps, "y": values, "points": curve[2]}
        return {"metric": metric, "curves": found, "trouble": trouble}

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
        made = {name: _slim(curve) for name, curve in _by_metric(points(self._store, row)).items()}
        with self._lock:
            self._ended[key] = made
            while len(self._ended) > KEPT:
                self._ended.popitem(last=False)
        return made


NEWEST = 1 << 40  # an attempt's number beyond all
SLIM = 3000


def _slim(curve: Curve) -> Curve:
    """Thin a curve with a million points."""
    if len(curve[0]) <= SLIM:
        return curve
    return *thin(curve[0], curve[1], SLIM), curve[2]


def _by_metric(found: Iterable[Point]) -> dict[str, Curve]:
    curves: dict[str, tuple[list[float], list[float]]] = {}
    for point in found:
        for name, value in point.values.items():
            steps, values = curves.setdefault(name, ([], []))
            steps.append(point.step)
            values.append(value)
    return {name: (steps, values, len(steps)) for name, (steps, values) in curves.items()}
