"""Opens a store for a person, who waits less long for an answer than a worker."""

from __future__ import annotations

from hostler import settings
from hostler.store import Store, open_store

PATIENCE = 10.0  # seconds


def open_at(url: str) -> Store:
    return open_store(url, retry=min(settings.timing().retry, PATIENCE), shared=True)
