"""Every point of every run, in long form, as it stands: what a lost attempt logged past its checkpoint is not
there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from hostler.analysis.chosen import Names, chosen
from hostler.records import metrics
from hostler.records.log import RunLog
from hostler.records.points import Point
from hostler.records.rows import Row
from hostler.records.state import fold
from hostler.store import Store, open_store

if TYPE_CHECKING:
    import pandas

COLUMNS = ["run", "metric", "step", "value", "time"]


def curves(url: str, sweep: Names = None, *, run: Names = None, metric: Names = None) -> pandas.DataFrame:
    """Columns run, metric, step, value, time (seconds since 1970)."""
    import pandas

    store = open_store(url)
    wanted = {metric} if isinstance(metric, str) else None if metric is None else set(metric)
    lines: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for row in chosen(store, sweep, run):
        for point in points(store, row):
            for name, value in point.values.items():
                if wanted is None or name in wanted:
                    for column, cell in zip(
                        COLUMNS, (row.id, name, point.step, value, point.time), strict=True
                    ):
                        lines[column].append(cell)
    types = {"run": "object", "metric": "object", "step": "int64", "value": "float64", "time": "float64"}
    return pandas.DataFrame(lines, columns=COLUMNS).astype(types)


def points(store: Store, row: Row) -> Iterator[Point]:
    """The points of one run, oldest first."""
    if not row.attempt:
        return iter(())
    attempt = fold(RunLog(store, row.key).read_on().entries).attempt
    return iter(metrics.read(store, row.id, attempt))
