"""Values of runs at the levels where they are compared, one small object for each, written once.

A run that goes on from an older checkpoint meets a level again: what it wrote first stands.
"""

from __future__ import annotations

from hostler.records import layout
from hostler.records.body import decode, encode
from hostler.records.log import RunKey
from hostler.store import NotFound, Store


def write(store: Store, key: RunKey, level: int, value: float, step: int, attempt: int) -> None:
    """The best value that a run had when it reached a level."""
    body = {"value": value, "step": step, "attempt": attempt}
    store.put(layout.rung(key.sweep, level, key.run), encode(body), if_absent=True)


class RungReader:
    """All values of one sweep; each is read once."""

    def __init__(self, store: Store, sweep: str) -> None:
        self._store, self._sweep = store, sweep
        self.values: dict[int, dict[str, float]] = {}  # level → run → value

    def update(self) -> dict[int, dict[str, float]]:
        """level → run → value, as they are now."""
        for entry in self._store.list(layout.rungs(self._sweep)):
            level, run = layout.split_rung(entry.key)
            here = self.values.setdefault(level, {})
            if run not in here:
                try:
                    here[run] = float(decode(self._store.get(entry.key).data, entry.key)["value"])
                except NotFound:
                    continue
        return self.values
