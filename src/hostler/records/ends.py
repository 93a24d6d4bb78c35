"""How the runs of a sweep have ended, for a search that learns from it; each end is read once."""

from __future__ import annotations

from collections.abc import Collection

from hostler.records import layout
from hostler.records.body import Record, decode
from hostler.store import NotFound, Store


class EndReader:
    """run → its newest end. Copies serve: they decide nothing here but what a search believes."""

    def __init__(self, store: Store, sweep: str) -> None:
        self._store, self._sweep = store, sweep
        self._numbers: dict[str, int] = {}
        self.ends: dict[str, Record] = {}

    def names(self) -> set[str]:
        """Runs that have an end, from names alone."""
        return {layout.run_of_log_entry(entry.key) for entry in self._store.list(layout.ends(self._sweep))}

    def update(self, only: Collection[str] | None = None) -> dict[str, Record]:
        """All that is new, or what is new of these runs."""
        for entry in self._store.list(layout.ends(self._sweep)):
            run, k = layout.split_log_entry(entry.key)
            if k <= self._numbers.get(run, 0) or (only is not None and run not in only):
                continue
            try:
                self.ends[run] = decode(self._store.get(entry.key).data, entry.key)
            except NotFound:
                continue
            self._numbers[run] = k
        return self.ends
