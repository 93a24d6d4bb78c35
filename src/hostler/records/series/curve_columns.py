"""The curves of one run as columns: metrics that were always logged together share their steps and times."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

from hostler.frozen import dataclass
from hostler.records.series.points import Point

Numbers = Any  # array.array, or numpy's where it is installed: 8 bytes each


@dataclass(frozen=True)
class Track:
    """Metrics of which every point has all: one step and one time for each."""

    steps: Numbers
    times: Numbers
    values: Mapping[str, Numbers]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.values)

    @property
    def size(self) -> int:
        """Bytes."""
        return 8 * len(self.steps) * (2 + len(self.values))


def tracks(points: Sequence[Point]) -> list[Track]:
    """The points as they were logged, metric by metric. Pure."""
    if not points:
        return []
    first = points[0].values.keys()
    if all(point.values.keys() == first for point in points):
        return [_track(points, sorted(first))] if first else []
    where: dict[str, list[int]] = {}
    for n, point in enumerate(points):
        for name in point.values:
            where.setdefault(name, []).append(n)
    together: dict[tuple[int, ...], list[str]] = {}
    for name in sorted(where):
        together.setdefault(tuple(where[name]), []).append(name)
    return [_track([points[n] for n in places], names) for places, names in together.items()]


def _track(points: Sequence[Point], names: Sequence[str]) -> Track:
    return Track(
        array("q", [point.step for point in points]),
        array("d", [point.time for point in points]),
        {name: array("d", [point.values[name] for point in points]) for name in names},
    )
