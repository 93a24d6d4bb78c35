"""Values of runs at the levels where they are compared, one small object for each, written once.

A run that goes on from an older checkpoint meets a level again: what it wrote first stands.
"""

from __future__ import annotations

import threading

from hostler.records import layout
from hostler.records.body import decode, encode
from hostler.records.log import RunKey
from hostler.store import NotFound, Store

Values = dict[int, dict[str, float]]  # level → run → value


def write(store: Store, key: RunKey, level: int, value: float, step: int, attempt: int) -> None:
    """What a run had logged last when it reached a level."""
    body = {"value": value, "step": step, "attempt": attempt}
    store.put(layout.rung(key.sweep, level, key.run), encode(body), if_absent=True)


class RungReader:
    """Values of one sweep's runs from index `first` on; each is read once. Safe to use from several
    threads."""

    def __init__(self, store: Store, sweep: str, first: int = 0) -> None:
        self._store, self._sweep, self._first = store, sweep, first
        self._values: dict[int, dict[str, float]] = {}
        self._lock = threading.Lock()

    def update(self, level: int | None = None) -> Values:
        """The values at a level, or at all, as they are now."""
        prefix = layout.rungs(self._sweep) if level is None else layout.level(self._sweep, level)
        with self._lock:
            for entry in self._store.list(prefix):
                self._read(entry.key)
            return {at: dict(here) for at, here in self._values.items() if level in (None, at)}

    def _read(self, key: str) -> None:
        level, run = layout.split_rung(key)
        if RunKey(self._sweep, run).index < self._first:
            return
        here = self._values.setdefault(level, {})
        if run not in here:
            try:
                here[run] = float(decode(self._store.get(key).data, key)["value"])
            except NotFound:
                return


class RungReaders:
    """One reader for each sweep, shared by all that runs on a worker."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._readers: dict[tuple[str, int], RungReader] = {}
        self._lock = threading.Lock()

    def of(self, sweep: str, first: int = 0) -> RungReader:
        with self._lock:
            return self._readers.setdefault((sweep, first), RungReader(self._store, sweep, first))
