"""Answers to the page besides the rows: a run, a comparison, errors, workers and their spend."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from hostler.analysis.spend import spend
from hostler.errors import HostlerError
from hostler.records.rows import Row
from hostler.records.run import heartbeats, run_details
from hostler.records.run.log import RunKey
from hostler.records.sweep import error_groups
from hostler.spec.params import flatten
from hostler.store import Store


def run(store: Store, key: RunKey) -> dict[str, Any]:
    """Everything of one run that has a page of its own."""
    found = run_details.read(store, key)
    ran = found.environment or {}
    return {
        "attempts": [{**asdict(one), "words": one.words} for one in found.tries],
        "events": [asdict(one) for one in found.events],
        "totals": found.metrics,
        "checkpoints": [asdict(one) for one in found.checkpoints],
        "outputs": [{"name": f.get("name"), "size": f.get("size")} for f in found.outputs],
        "environment": {k: v for k, v in ran.items() if isinstance(v, (str, int, float))},
        "command": list(ran.get("command") or found.job.command),
        "result": found.result,
        "failure": found.row.failure,
        "notes": found.job.notes,
    }


def compare(rows: Sequence[Row]) -> dict[str, Any]:
    """Only what differs between runs: parameters, then last values of metrics. Pure."""
    params = _differing([flatten(row.params) for row in rows])
    metrics = [{n: v for n, v in r.metrics.items() if not n.startswith("system/")} for r in rows]
    facts = _differing([{"state": r.state, "host": r.host, "code": r.code[:12]} for r in rows])
    return {
        "runs": [{"id": r.id, "name": r.name} for r in rows],
        "same": sum(1 for _ in flatten(rows[0].params)) - len(params) if rows else 0,
        "params": params,
        "facts": facts,
        "metrics": _differing(metrics),
    }


def _differing(records: Sequence[dict[str, Any]]) -> dict[str, list[Any]]:
    names = dict.fromkeys(name for record in records for name in record)
    columns = {name: [record.get(name) for record in records] for name in names}
    return {name: cells for name, cells in columns.items() if len({repr(c) for c in cells}) > 1}


def errors(store: Store, rows: Sequence[Row]) -> list[dict[str, Any]]:
    ours = [row for row in rows if not row.trashed]
    return [asdict(group) for group in error_groups.groups(list(error_groups.failed(store, ours)))]


def workers(store: Store) -> dict[str, Any]:
    """Workers with a heartbeat, and their cost as far as it is known."""
    found = []
    for session in heartbeats.etags(store):
        try:
            beat = heartbeats.read(store, session)
        except HostlerError:  # written by a newer version, or damaged
            continue
        if beat is not None:
            kept = {n: v for n, v in beat.items() if isinstance(v, (str, int, float, bool))}
            found.append({**kept, "session": session, "runs": list(beat.get("runs") or {})})
    return {"workers": found, "spend": spend(store)}
