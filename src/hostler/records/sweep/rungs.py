"""Values of runs at the levels where they are compared, one small object for each, written once.

A run that goes on from an older checkpoint meets a level again: what it wrote first stands.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from math import nan

from hostler.errors import DamagedError, NewerFormatError
from hostler.records import layout
from hostler.records.body import decode, encode, taken_apart
from hostler.records.run.log import RunKey
from hostler.store import NotFound, Store

Values = dict[int, dict[str, float]]  # level → run → value


def write(store: Store, key: RunKey, level: int, value: float, step: int, attempt: int) -> None:
    """Write the value a run had logged last when it reached a level."""
    body = {"value": value, "step": step, "attempt": attempt}
    store.put(layout.rung(key.sweep, level, key.run), encode(body), if_absent=True)


class RungReader:
    """Values of one sweep's runs from index `first` on; each is read once. Safe to use from several
    threads."""

    def __init__(
        self, store: Store, sweep: str, first: int = 0, say: Callable[[str], None] = lambda line: None
    ) -> None:
        self._store, self._sweep, self._first, self._say = store, sweep, first, say
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
        found = layout.split_rung(key)
        if found is None or RunKey(self._sweep, found[1]).index < self._first:
            return
        level, run = found
        here = self._values.setdefault(level, {})
        if run not in here:
            try:
                record = decode(self._store.get(key).data, key)
                with taken_apart(key):
                    here[run] = float(record["value"])
            except NotFound:
                return
            except (DamagedError, NewerFormatError) as error:
                self._say(str(error))
                here[run] = nan  # it was there, and nobody knows how good it was


class RungReaders:
    """Readers of rungs, one for each sweep, shared by all runs on a worker."""

    def __init__(self, store: Store, say: Callable[[str], None] = lambda line: None) -> None:
        self._store, self._say = store, say
        self._readers: dict[tuple[str, int], RungReader] = {}
        self._lock = threading.Lock()

    def of(self, sweep: str, first: int = 0) -> RungReader:
        with self._lock:
            return self._readers.setdefault((sweep, first), RungReader(self._store, sweep, first, self._say))
