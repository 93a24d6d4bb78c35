"""Surroundings of attempts: machine, Python, packages, command.

An attempt that lasts has a record of its own while it still runs, for the day its worker is lost. One of a
moment says in the entry that closes it (`ran`) what it ran on: its command, and the name of facts that it
shares with all others there. Those are named by their content and written once.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

from hostler.records import layout
from hostler.records.body import NUMBER, ROWS, TABLE, TEXT, Record, checked, checked_rows, decode, encode
from hostler.records.run.history import closing
from hostler.store import NotFound, Store

RAN, FACTS = "ran", "facts"


def name_of(facts: Record) -> str:
    text = json.dumps(facts, sort_keys=True, default=str)
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]


def share(store: Store, facts: Record) -> str:
    """Write facts that many attempts share; their name."""
    name = name_of(facts)
    store.put(layout.surroundings(name), encode(facts))
    return name


def write(store: Store, run: str, attempt: int, facts: Record) -> None:
    """The record of an attempt that lasts."""
    store.put(layout.environment(run, attempt), encode(facts))


def of_attempt(store: Store, run: str, attempt: int, entries: Sequence[Record]) -> Record | None:
    """Surroundings of an attempt; None if it has no record."""
    ran: dict[str, Any] = (closing(entries, attempt) or {}).get(RAN) or {}
    if FACTS not in ran:
        return _read(store, layout.environment(run, attempt))
    shared = _read(store, layout.surroundings(ran[FACTS])) or {}
    return {**shared, **{name: value for name, value in ran.items() if name != FACTS}}


def _read(store: Store, key: str) -> Record | None:
    try:
        record = checked(decode(store.get(key).data, key), _FIELDS, key)
    except NotFound:
        return None
    checked(record.get("python") or {}, {"version": TEXT, "exe": TEXT}, key)
    checked_rows(record.get("gpus") or [], {"name": TEXT}, key, ["name"])
    return record


_FIELDS = {
    "python": TABLE,
    "packages": TABLE,
    "memory": NUMBER,
    "gpus": ROWS,
    "driver": TEXT,
    "command": ROWS,
}
