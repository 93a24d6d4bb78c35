"""When a run was claimed and its holder last beat, by the store's own clock."""

from __future__ import annotations

from hostler.records import layout
from hostler.records.run.log import CLAIM, RunKey, RunLog
from hostler.store import Store


def claims(store: Store, key: RunKey) -> list[tuple[int, dict[str, object]]]:
    """Claims of a run, each with its number in the log."""
    entries = RunLog(store, key).read_on().entries
    return [(head, entry) for head, entry in enumerate(entries, 1) if entry["kind"] == CLAIM]


def claimed_at(store: Store, key: RunKey, attempt: int) -> float:
    """Time of a claim: the first is that of attempt 1."""
    head = claims(store, key)[attempt - 1][0]
    return next(entry.modified for entry in store.list(layout.log_entry(key.sweep, key.run, head)))


def last_beat(store: Store, key: RunKey) -> float:
    """Time of the last beat of the worker that first claimed the run."""
    alive = layout.alive(str(claims(store, key)[0][1]["session"]))
    return next(entry.modified for entry in store.list(alive))
