"""Runs and sweeps as plain data for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hostler.analysis.board.live import LiveSweep
from hostler.records.rows import Row
from hostler.records.sweep.summary import Summary, summarize
from hostler.spec.params import flatten

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
    "cost",
    "tags",
    "stop",
    "stale",
    "lost",
    "section",
    "copy_of",
    "trashed",
    "paused_by",
    "by_hand",
    "exit",
]


def row(one: Row) -> dict[str, Any]:
    return {
        **{name: getattr(one, name) for name in FIELDS},
        "failure": _failure(one),
        "params": flatten(one.params),
        "metrics": _own(one.metrics),
    }


def table(rows: Sequence[Row]) -> dict[str, Any]:
    """The same by column: ten thousand rows in a few dozen lists, or one value where all are the same."""
    fields = {name: [getattr(r, name) for r in rows] for name in FIELDS}
    fields["failure"] = [_failure(r) for r in rows]
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


def _failure(one: Row) -> str | None:
    return f"{one.failure.get('kind', '')}: {one.failure.get('message', '')}" if one.failure else None


def sweep(one: LiveSweep) -> dict[str, Any]:
    """A line of the list of sweeps."""
    if one.job is None:
        return {"name": one.name, "trouble": one.trouble, "version": one.version, "counts": {}, "runs": 0}
    rows = list(one.rows.values())
    short = summarize(one.job, rows, one.halted)
    return {
        "name": one.name,
        "title": one.job.called,
        "method": one.job.method,
        "runs": short.runs + short.unchosen,
        "counts": short.counts,
        "eta": short.eta,
        "best": _best(short),
        "metric": short.metric,
        "goal": one.job.goal,
        "halted": short.halted,
        "unlogged": short.unlogged,
        "waiting": one.waiting,
        "trouble": one.trouble,
        "version": one.version,
    }


def _best(short: Summary) -> dict[str, Any] | None:
    if short.best is None:
        return None
    return {
        "id": short.best.id,
        "name": short.best.name,
        "value": short.value,
        "params": flatten(short.best.params),
    }
