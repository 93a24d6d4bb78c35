"""Curves and kept files of a run. A file is one that the run's own list names: nothing else of this machine
or of the store can be asked for."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hostler.errors import MissingError, UsageError
from hostler.records.checkpoint import outputs
from hostler.records.run import resolve, upstream
from hostler.records.run.log import RunKey
from hostler.records.series import metrics, packing
from hostler.records.series.points import Point
from hostler.spec.nearest import did_you_mean
from hostler.spec.units import show_size
from hostler.store import Store

LARGEST = 1 << 20  # bytes of a file that is read


def curves(store: Store, run: str, names: Sequence[str], most: int) -> dict[str, Any]:
    """Metrics of a run: last, least and greatest value, and at most so many points [step, value] of each."""
    points = metrics.read(store, _key(store, run).run, packing.ANY)
    totals = metrics.summary(points)
    for name in names:
        if name not in totals:
            hint = did_you_mean(name, totals, f"logged: {', '.join(totals) or 'none'}")
            raise MissingError(f"{run} has not logged {name!r}", hint=hint)
    chosen = names or [name for name in totals if not name.startswith("system/")]
    return {name: {**totals[name], "points": _thinned(points, name, most)} for name in chosen}


def _thinned(points: Sequence[Point], name: str, most: int) -> list[list[float]]:
    """Points of one metric, evenly chosen, the first and the last among them."""
    own = [[point.step, point.values[name]] for point in points if name in point.values]
    if len(own) <= most:
        return own
    return [own[round(n * (len(own) - 1) / max(1, most - 1))] for n in range(most)]


def files(store: Store, run: str) -> list[dict[str, Any]]:
    """Files that a run has left, with their sizes."""
    found = outputs.newest(store, _key(store, run).run)
    return [{"file": row["name"], "size": row["size"]} for row in (found[1] if found else [])]


def text_of(store: Store, run: str, name: str) -> str:
    """A text file that a run has left."""
    key = _key(store, run)
    found = outputs.newest(store, key.run)
    row = next((row for row in reversed(found[1] if found else []) if row["name"] == name), None)
    if row is None:
        raise MissingError(
            f"{run} has left no file named {name!r}", hint="list_files lists those that it has left"
        )
    if row["size"] > LARGEST:
        raise UsageError(
            f"{name} has {show_size(row['size'])}, too much to read here", hint=f"hostler pull {run}"
        )
    with tempfile.TemporaryDirectory(prefix="hostler-mcp-") as folder:
        outputs.fetch(store, key.run, [row], Path(folder))
        data = (Path(folder) / name).read_bytes()
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise UsageError(f"{name} is not a text", hint=f"hostler pull {run}") from None


def _key(store: Store, run: str) -> RunKey:
    return upstream.original(store, resolve.run(store, run))
