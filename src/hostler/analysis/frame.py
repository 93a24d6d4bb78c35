"""All runs of a store, one row each: what they were given, how they are, what came out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hostler.analysis.chosen import Names, chosen
from hostler.analysis.curves import points
from hostler.records.metrics import summary
from hostler.records.rows import Row
from hostler.spec.params import flatten
from hostler.store import Store, open_store

if TYPE_CHECKING:
    import pandas

FACTS = [
    "run",
    "name",
    "sweep",
    "index",
    "state",
    "attempts",
    "host",
    "started",
    "seconds",
    "step",
    "tags",
    "failure",
]


def frame(url: str, sweep: Names = None, *, state: str | None = None) -> pandas.DataFrame:
    """Columns: facts, then each parameter, then `<metric>` (the last value) and `<metric>.best`.

    The best is the largest, or the smallest where the sweep's goal for that metric is `min` or where the
    metric is called a loss or an error. A metric that has the name of a fact is `metric.<name>`, a parameter
    that has the name of another column `param.<name>`."""
    import pandas

    store = open_store(url)
    rows = chosen(store, sweep, state=state)
    lines = [_line(store, row) for row in rows]
    names = list(dict.fromkeys([*FACTS, *(name for line in lines for name in line)]))
    return pandas.DataFrame(lines, columns=names)


def _line(store: Store, row: Row) -> dict[str, Any]:
    line: dict[str, Any] = {
        "run": row.id,
        "name": row.name,
        "sweep": row.sweep,
        "index": row.index,
        "state": row.state,
        "attempts": row.attempt,
        "host": row.host,
        "started": row.started,
        "seconds": row.seconds,
        "step": row.step,
        "tags": ",".join(row.tags),
        "failure": (row.failure or {}).get("message"),
    }
    totals = summary(list(points(store, row)))
    given = flatten(row.params)
    taken = {*line, *totals}
    line |= {f"param.{name}" if name in taken else name: value for name, value in given.items()}
    for name, total in totals.items():
        column = f"metric.{name}" if name in FACTS else name
        line[column] = total["last"]
        line[f"{column}.best"] = total["min" if is_low_best(name, row.metric, row.goal) else "max"]
    return line


def is_low_best(name: str, metric: str | None, goal: str) -> bool:
    """Whether less is better: as the sweep says of its metric, else by the name."""
    if name == metric:
        return goal == "min"
    last = name.lower().replace("-", "_").rpartition("/")[2]
    return any(
        word in last.split("_")
        for word in ("loss", "error", "err", "mse", "mae", "rmse", "nll", "perplexity")
    )
