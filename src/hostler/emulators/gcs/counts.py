"""Counts requests by kind and by the object's key."""

from __future__ import annotations

import threading
from collections import Counter

from hostler.emulators.gcs.route import Kind, Route


class Counts:
    """Counts every request on arrival, whatever becomes of it. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._seen: Counter[tuple[Kind, str]] = Counter()

    def add(self, at: Route) -> None:
        with self._lock:
            self._seen[at.kind, at.key] += 1

    def of(self, kind: Kind | None = None, *, key: str = "") -> int:
        """Requests of a kind (all kinds by default) for keys that start with `key`."""
        with self._lock:
            return sum(
                number
                for (seen, name), number in self._seen.items()
                if kind in (None, seen) and name.startswith(key)
            )

    def rows(self) -> list[tuple[Kind, str, int]]:
        """Kind, key and number of all that were made."""
        with self._lock:
            return [(kind, key, number) for (kind, key), number in self._seen.items()]

    def by_kind(self) -> dict[Kind, int]:
        with self._lock:
            kinds = {kind for kind, _ in self._seen}
        return {kind: self.of(kind) for kind in kinds}

    def clear(self) -> None:
        with self._lock:
            self._seen.clear()
