"""Ends of a sweep's runs, for a search that learns from them; each is read once."""

from __future__ import annotations

from collections.abc import Collection

from hostler.errors import DamagedError, NewerFormatError
from hostler.records import layout
from hostler.records.body import Record
from hostler.records.run.log import parse_entry
from hostler.store import NotFound, Store

WHOLE = 20  # so many looks pass over the runs at the beginning that have ended; then one looks at all


class EndReader:
    """run → its newest end. Copies serve: they decide nothing here but what a search believes."""

    def __init__(self, store: Store, sweep: str) -> None:
        self._store, self._sweep = store, sweep
        self._numbers: dict[str, int] = {}
        self._indices: set[int] = set()
        self._first = 0  # all runs before this index have ended
        self._looks = 0
        self.ends: dict[str, Record] = {}

    def names(self) -> set[str]:
        """Runs that have an end, from names alone."""
        found = (entry.key for entry in self._store.list(layout.ends(self._sweep)))
        return {layout.run_of_log_entry(key) for key in found if layout.is_log_entry(key)}

    def update(self, only: Collection[str] | None = None) -> dict[str, Record]:
        """All that is new, or what is new of these runs. One that was reopened and has ended again is found a
        little later."""
        prefix = layout.ends(self._sweep)
        after = f"{prefix}{self._first:07d}" if self._looks % WHOLE and only is None else ""
        self._looks += 1
        for listed in self._store.list(prefix, after):
            if not layout.is_log_entry(listed.key):
                continue
            run, k = layout.split_log_entry(listed.key)
            if k > self._numbers.get(run, 0) and (only is None or run in only):
                self._read(listed.key, run, k)
        while self._first in self._indices:
            self._first += 1
        return self.ends

    def _read(self, key: str, run: str, k: int) -> None:
        try:
            self.ends[run] = parse_entry(self._store.get(key).data, key)
        except NotFound:
            return
        except (DamagedError, NewerFormatError):  # a copy: the search does without it
            self.ends.pop(run, None)
        self._numbers[run] = k
        self._indices.add(int(run[:7]))
