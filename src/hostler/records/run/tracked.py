"""Runs in tracking tools, as the store knows of them: how each tool does, and the files that tools left.

Copies: nothing decides by them. Of each attempt there is one record a tool, and files of the newest that left
any.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import asdict, fields
from pathlib import Path

from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import PART, TEXT, WHOLE, checked, decode, encode
from hostler.records.checkpoint import restorer
from hostler.records.checkpoint.restorer import rows_of
from hostler.store import NotFound, Store
from hostler.store.base import Entry


@dataclass(frozen=True)
class Tracked:
    """A tracking tool's record of an attempt."""

    kind: str
    id: str  # of the run, in the tool
    attempt: int
    state: str = ""  # opening | open | closing | closed | failed
    url: str = ""  # where it is seen
    error: str = ""
    sent: int = 0  # points


def write(store: Store, run: str, one: Tracked) -> None:
    store.put(layout.tracked(run, one.attempt, one.kind), encode(asdict(one)))


def read(store: Store, run: str, *, before: int = sys.maxsize) -> list[Tracked]:
    """The newest record of each tool, of attempts before this one."""
    newest: dict[str, str] = {}
    for entry in store.list(layout.trackers(run)):
        found = layout.split_tracked(entry.key)
        if found is not None and found[0] < before:
            newest[found[1]] = entry.key  # in order of attempts
    return [one for key in newest.values() if (one := _one(store, key))]


def _one(store: Store, key: str) -> Tracked | None:
    try:
        record = checked(decode(store.get(key).data, key), _FIELDS, key, ["kind", "id", "attempt"])
    except NotFound:
        return None
    return Tracked(**{f.name: record[f.name] for f in fields(Tracked) if f.name in record})


_FIELDS = {
    "kind": PART,
    "id": TEXT,
    "attempt": WHOLE,
    "state": TEXT,
    "url": TEXT,
    "error": TEXT,
    "sent": WHOLE,
}


def upload(store: Store, run: str, attempt: int, kind: str, name: str, path: Path) -> None:
    store.upload(path, layout.tracker_file(run, attempt, kind, name))


def remove_before(store: Store, run: str, attempt: int, kind: str) -> None:
    """Files of attempts before this one: it holds all that counts."""
    for entry, n, of, _ in _files(store, run):
        if of == kind and n < attempt:
            store.delete(entry.key)


def fetch(store: Store, run: str, folder: Path) -> list[str]:
    """Bring what tools left of their newest attempts here, as <kind>/<file>: the names."""
    found = list(_files(store, run))
    newest = {kind: max(n for _, n, of, _ in found if of == kind) for _, _, kind, _ in found}
    wanted = [(entry, f"{kind}/{name}") for entry, n, kind, name in found if n == newest[kind]]
    rows = rows_of([{"name": name, "size": entry.size, "n": n} for n, (entry, name) in enumerate(wanted)])
    if rows:
        folder.mkdir(parents=True, exist_ok=True)
        restorer.restore(store, rows, lambda n: wanted[n][0].key, folder)
    return [row.name for row in rows]


def files_url(store: Store, run: str, attempt: int, kind: str) -> str:
    """Where files of a tool are, as other programs say it."""
    return f"{store.url.rstrip('/')}/{layout.tracker_files(run, attempt, kind)}".rstrip("/")


def _files(store: Store, run: str) -> Iterator[tuple[Entry, int, str, str]]:
    """(entry, attempt, kind, name) of each."""
    for entry in store.list(layout.trackers(run)):
        found = layout.split_tracker_file(entry.key)
        if found is not None:
            yield entry, *found
