"""hostler itself and its store driver in the store, by hash: what machines take that have neither.

Each is there once, however many submissions name it.
"""

from __future__ import annotations

from pathlib import Path

from hostler.records import layout
from hostler.remote.parcel import parcel
from hostler.remote.wheels import sha_of
from hostler.store.base import Store


def bring(store: Store) -> str:
    """The hash by which this very hostler is known in the store."""
    packed = parcel()
    key = layout.library(packed.sha)
    if not _is_there(store, key):
        store.put(key, packed.data)
    return packed.sha


def bring_wheel(store: Store, file: Path) -> str:
    data = file.read_bytes()
    key = layout.wheel(sha_of(data))
    if not _is_there(store, key):
        store.upload(file, key)
    return sha_of(data)


def _is_there(store: Store, key: str) -> bool:
    return any(entry.key == key for entry in store.list(key))
