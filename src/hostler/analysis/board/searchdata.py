"""A search's findings so far: the value each run is ranked by, and the importance of parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from hostler.analysis.board.live import LiveSweep
from hostler.analysis.names import is_low_best
from hostler.analysis.plots.importance import LEAST, importances, runs_compared
from hostler.analysis.plots.source import PlotRun, PlotSource, scales
from hostler.records.rows import Row
from hostler.spec.params import flatten


def search(one: LiveSweep, metric: str = "") -> dict[str, Any]:
    """Values by run, importance by parameter; `why` where there is nothing to show. `metric`: another one
    than the sweep's own, by its last values. Pure."""
    rows = sorted((row for row in list(one.rows.values()) if not row.trashed), key=lambda row: row.index)
    rule = one.job.ranked_by if one.job else None
    own = rule is not None and metric in ("", rule.name)
    name = metric or (rule.name if rule else _first(rows))
    low = is_low_best(name, rule.name if rule else None, rule.goal if rule else "max")
    runs = [
        PlotRun(row, flatten(row.params), _value(row, name, own), one.job.round(row.index) or 1)
        for row in rows
        if one.job
    ]
    keys = tuple(dict.fromkeys(key for run in runs for key in run.params))
    source = PlotSource(runs, name, "min" if low else "max", one.name, keys)
    return {
        "metric": name,
        "goal": source.goal,
        "label": source.label if own else name,
        "values": {run.row.id: run.value for run in source.valued},
        "rounds": {run.row.id: run.round for run in runs if run.round > 1},
        "varying": source.varying,
        "scales": scales([one.job] if one.job else []),
        "importance": importances(source),
        "compared": len(runs_compared(source)),
        "least": LEAST,
        "why": "" if source.valued else source.why_none,
    }


def _value(row: Row, name: str, own: bool) -> float:
    if own:
        return row.judged.value if row.judged else math.nan
    return row.metrics.get(name, math.nan)


def _first(rows: Sequence[Row]) -> str:
    """A metric of a sweep that names none."""
    names = {name for row in rows for name in row.metrics if not name.startswith("system/")}
    return min(names, default="")
