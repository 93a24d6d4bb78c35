"""The journal of a search that learns: entry n is one trial's parameters, and so one queued run.

Whoever creates entry n+1 has read 1..n, and creates none beyond the budget: however many ask at a time, the
journal never holds more. Entries are immutable, so one that was read once is never read again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import decode, encode, taken_apart
from hostler.store import NotFound, Store

AT_ONCE = 16  # entries that are read beside each other when many are missing


@dataclass(frozen=True)
class JournalEntry:
    """Parameters of a trial: `picks` as the sampler chose them, `attrs` what it wants to remember."""

    params: Mapping[str, Any]
    picks: Mapping[str, Any] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)


class Journal:
    """Entries of one sweep's journal, as far as this process has read them. `since`: so many come before
    them that are those of an earlier search."""

    def __init__(self, store: Store, sweep: str, since: int = 0) -> None:
        self._store, self._sweep, self._since = store, sweep, since
        self.entries: list[JournalEntry] = []

    def read_on(self) -> list[JournalEntry]:
        """All entries there are now."""
        after = self._key() if self._since + len(self.entries) else ""
        listed = {entry.key for entry in self._store.list(layout.journal(self._sweep), after)}
        keys = [key for n in range(len(listed)) if (key := self._key(n + 1)) in listed]
        if len(keys) > AT_ONCE:
            from concurrent.futures import ThreadPoolExecutor  # scripts that run alone read no journal

            with ThreadPoolExecutor(AT_ONCE) as pool:
                self.entries += pool.map(self._read, keys)
        else:
            self.entries += list(map(self._read, keys))
        return self.entries

    def append(self, entry: JournalEntry, budget: int | None) -> bool:
        """Create the next entry: False if another's is there (and is read now), or the budget is spent."""
        if budget is not None and len(self.entries) >= budget:
            return False
        body = {"params": dict(entry.params), "picks": dict(entry.picks), "attrs": dict(entry.attrs)}
        key = self._key(1)
        data = encode(body)
        if self._store.put(key, data, if_absent=True):
            self.entries.append(_entry(data, key))
            return True
        journal_entry = self._next()
        if journal_entry is not None:
            self.entries.append(journal_entry)
        return False

    def _next(self) -> JournalEntry | None:
        try:
            return self._read(self._key(1))
        except NotFound:
            return None

    def _read(self, key: str) -> JournalEntry:
        return _entry(self._store.get(key).data, key)

    def _key(self, ahead: int = 0) -> str:
        return layout.journal_entry(self._sweep, self._since + len(self.entries) + ahead)


def _entry(data: bytes, key: str) -> JournalEntry:
    record = decode(data, key)
    with taken_apart(key):
        return JournalEntry(
            dict(record["params"]), dict(record.get("picks") or {}), dict(record.get("attrs") or {})
        )
