"""The evidence of a play on a virtual clock, for the checker of histories: the store as files, what happened,
what was expected, and what hostler's readers show. No process, file or machine can be left of it.

`WatchedStore` is the recorder here: it stands in the store and notes entries and checkpoints as they are
written, by the clock of whoever writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import checker
from rawrecords import COMMIT, ENTRY

from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.series import metrics
from hostler.store.memory import MemoryStore


class WatchedStore(MemoryStore):
    """A store that keeps what happened, in its order; `clock` is that of whoever makes a request."""

    def __init__(self) -> None:
        super().__init__()
        self.clock: Callable[[], float] = lambda: 0.0
        self.happened: list[dict[str, Any]] = []

    def note(self, what: str, at: float, **facts: Any) -> None:
        self.happened.append({"what": what, "at": at, **facts})

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        seen = len(self._objects)
        done = super().put(key, data, if_absent=if_absent)
        if done and len(self._objects) > seen:  # not the same bytes once more
            self._note_record(key, data)
        return done

    def _note_record(self, key: str, data: bytes) -> None:
        entry, commit = ENTRY.fullmatch(key), COMMIT.fullmatch(key)
        if entry and entry[2] == "log":
            record = json.loads(data)
            names = ("kind", "token", "session", "host", "attempt", "state", "reason")
            facts = {name: record[name] for name in names if record.get(name) not in (None, "")}
            facts = {"run": entry[3], "k": int(entry[4]), "theirs": record.get("at"), **facts}
            self.note("entry", self.clock(), **facts)
        elif commit:
            record = json.loads(data)
            facts = {"attempt": int(commit[2]), "step": int(commit[3]), "files": len(record["files"])}
            self.note("saved", self.clock(), run=commit[1], theirs=record.get("at"), **facts)


def evidence(place: Path, store: WatchedStore, keys: Sequence[RunKey], expected: Mapping[str, Any]) -> Path:
    for entry in store.list(""):
        path = place / "store" / entry.key
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(store.get(entry.key).data)
    events = [
        *store.happened,
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
