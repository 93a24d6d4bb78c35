"""Runs and sweeps as plain data for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from hostler.analysis.board.live import LiveSweep
from hostler.records.rows import Row
from hostler.records.run.log import RUNG
from hostler.records.sweep.summary import Summary, summarize
from hostler.spec.params import flatten
from hostler.spec.ranking import LAST
from hostler.spec.states import COUNTED, PAUSED

PARKED = "parked"
FIELDS = [
    "id",
    "name",
    "sweep",
    "index",
    "state",
    "step",
    "attempt",
    "host",
    "started",
    "seconds",
    "earlier",
    "began",
    "cost",
    "tags",
    "stop",
    "stale",
    "lost",
    "section",
    "copy_of",
    "trashed",
    "paused_by",
    "rung",
    "by_hand",
    "exit",
    "why",
]


def row(one: Row) -> dict[str, Any]:
    return {
        **{name: getattr(one, name) for name in FIELDS},
        "failure": _failure(one),
        "ranked": _ranked(one),
        "value": _value(one),
        "params": flatten(one.params),
        "metrics": _own(one.metrics),
    }


def table(rows: Sequence[Row]) -> dict[str, Any]:
    """The same by column: ten thousand rows in a few dozen lists, or one value where all are the same."""
    fields = {name: [getattr(r, name) for r in rows] for name in FIELDS}
    fields["failure"] = [_failure(r) for r in rows]
    fields["ranked"] = [_ranked(r) for r in rows]
    fields["value"] = [_value(r) for r in rows]
    return {
        "count": len(rows),
        "fields": {name: _column(cells) for name, cells in fields.items()},
        "params": _columns([flatten(r.params) for r in rows]),
        "metrics": _columns([_own(r.metrics) for r in rows]),
    }


def _columns(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    names = dict.fromkeys(name for record in records for name in record)
    return {name: _column([record.get(name) for record in records]) for name in names}


def _column(cells: list[Any]) -> Any:
    """`{"all": value}` or `{"each": values}`."""
    first = cells[0] if cells else None
    same = all(cell is first or (cell == first and type(cell) is type(first)) for cell in cells)
    return {"all": first} if same else {"each": cells}


def _own(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if not name.startswith("system/")}


def _ranked(one: Row) -> str | None:
    """Which value it is ranked by, where it is not the last one: `best, step 40`."""
    judged = one.judged
    return judged.shown if judged and judged.counts and judged.of != LAST else None


def _value(one: Row) -> float | None:
    """The value that it is ranked by; None where there is none that counts."""
    return one.judged.value if one.judged and one.judged.counts else None


def _failure(one: Row) -> str | None:
    return f"{one.failure.get('kind', '')}: {one.failure.get('message', '')}" if one.failure else None


class Sweeps:
    """Lines of the list of sweeps; one is made anew only when its sweep has changed."""

    def __init__(self) -> None:
        self._made: dict[str, tuple[LiveSweep, int, dict[str, Any]]] = {}

    def line(self, one: LiveSweep) -> dict[str, Any]:
        known, version = self._made.get(one.name), one.version
        if known is None or known[0] is not one or known[1] != version:
            known = (one, version, sweep(one))
            self._made[one.name] = known
        return known[2]


def sweep(one: LiveSweep) -> dict[str, Any]:
    """A line of the list of sweeps."""
    line = {"name": one.name, "trouble": one.trouble, "version": one.version, "submitted": one.submitted}
    if one.job is None:
        return {**line, "counts": {}, "runs": 0}
    rows = list(one.rows.values())
    short = summarize(one.job, rows, one.halted)
    costs = [row.cost for row in rows if row.cost is not None and not row.trashed]
    return {
        **line,
        "title": one.job.called,
        "method": one.job.method,
        "runs": short.runs + short.unchosen,
        "counts": kinds(short.counts, rows),
        "eta": short.eta,
        "best": _best(short),
        "metric": short.metric,
        "goal": one.job.goal,
        "halted": short.halted,
        "unlogged": short.unlogged,
        "waiting": one.waiting,
        "cost": sum(costs) if costs else None,
        "spark": best_so_far(rows, one.job.goal),
    }


def kinds(counts: Mapping[str, int], rows: Sequence[Row]) -> dict[str, int]:
    """Runs by state, those that a pruner has set aside as `parked`, apart from those that a person paused."""
    parked = sum(row.state == PAUSED and row.paused_by == RUNG and not row.trashed for row in rows)
    split = {**counts, PAUSED: counts.get(PAUSED, 0) - parked, PARKED: parked}
    return {state: count for state, count in split.items() if count}


SPARK = 60  # values of a spark line


def best_so_far(rows: Sequence[Row], goal: str) -> list[float]:
    """The best value after each run that ended, in the order of their ends; thinned. Pure."""
    ended = [row for row in rows if row.state in COUNTED and row.judged and row.judged.counts]
    ended.sort(key=lambda row: ((row.started or 0.0) + (row.seconds or 0.0), row.index))
    better = max if goal == "max" else min
    found = list(accumulate((row.judged.value for row in ended if row.judged), better))
    step = max(1, -(-len(found) // SPARK))
    return found[step - 1 :: step] if len(found) % step == 0 else [*found[step - 1 :: step], found[-1]]


def _best(short: Summary) -> dict[str, Any] | None:
    if short.best is None:
        return None
    return {
        "id": short.best.id,
        "name": short.best.name,
        **(short.best.judged._asdict() if short.best.judged else {"value": short.value}),
        "params": flatten(short.best.params),
    }
