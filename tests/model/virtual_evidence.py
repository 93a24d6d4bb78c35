"""The evidence of a play on a virtual clock, for the checker of histories: the store as files, what happened,
what was expected, and what hostler's readers show. No process, file or machine can be left of it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import checker

from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.series import metrics
from hostler.store.memory import MemoryStore


def evidence(
    place: Path,
    store: MemoryStore,
    keys: Sequence[RunKey],
    expected: Mapping[str, Any],
    happened: Iterable[Mapping[str, Any]] = (),
) -> Path:
    for entry in store.list(""):
        path = place / "store" / entry.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.get(entry.key).data)
    events = [
        *happened,
        {"what": "expected", "runs": expected},
        {"what": "read", "reader": "metrics", "when": "after", "runs": dict(_shown(store, keys))},
        {"what": "left"},
    ]
    (place / "history.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    return place


def _shown(store: MemoryStore, keys: Sequence[RunKey]) -> Iterator[tuple[str, dict[str, Any]]]:
    for key in keys:
        state = control.state_of(store, key)
        curves: dict[str, list[tuple[int, float]]] = {}
        for point in metrics.read(store, key.run, state.attempt):
            for name, value in point.values.items():
                if not name.startswith(checker.OWN):
                    curves.setdefault(name, []).append((point.step, value))
        yield key.run, {"state": state.state, "attempts": state.attempts, "curves": curves}
