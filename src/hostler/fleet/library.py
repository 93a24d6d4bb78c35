"""hostler itself and its store driver in the store, by hash: what machines take that have neither.

Each is there once, however many submissions name it; one that is old is written again (`reuse.py`).
"""

from __future__ import annotations

import time
from pathlib import Path

from hostler.records import layout, reuse
from hostler.remote.library_zip import own_zip, sha_of
from hostler.store.base import Store


def bring(store: Store) -> str:
    """The hash by which this very hostler is known in the store."""
    packed = own_zip()
    key = layout.library(packed.sha)
    if not reuse.is_fresh(store, key, time.time()):
        store.put(key, packed.data)
    return packed.sha


def bring_wheel(store: Store, file: Path) -> str:
    data = file.read_bytes()
    key = layout.wheel(sha_of(data))
    if not reuse.is_fresh(store, key, time.time()):
        store.upload(file, key)
    return sha_of(data)
