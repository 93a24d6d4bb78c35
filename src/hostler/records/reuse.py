"""Blobs of the store that a submission uses again: an old one is written again.

`hostler gc` leaves what is younger than its grace. Whoever finds a blob there that is older than half of the
grace writes it again, so that it stays until the submission has named it. Ages are those of the store's
clock by this machine's: they may differ by half of the grace.
"""

from __future__ import annotations

from hostler.settings import timing
from hostler.store import Store


def is_fresh(store: Store, key: str, now: float) -> bool:
    """Whether the object is there and so young that nobody removes it for now."""
    modified = next((entry.modified for entry in store.list(key) if entry.key == key), None)
    return modified is not None and not is_old(modified, now)


def is_old(modified: float, now: float) -> bool:
    return now - modified > timing().gc_grace / 2
