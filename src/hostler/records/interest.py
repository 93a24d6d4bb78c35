"""Somebody looks: a marker that an open dashboard rewrites; workers that see it send metrics with each beat.

No clock is compared: a marker whose etag has not changed for a while, as its reader has seen it, is one that
was left behind.
"""

from __future__ import annotations

from hostler.errors import StoreError
from hostler.records import layout
from hostler.records.body import encode
from hostler.store import NotFound, Store

EVERY = 5.0  # seconds between two marks of somebody who looks
STILL = 30.0  # a marker that stands still this long means nothing


def show(store: Store) -> None:
    """Say that somebody looks, for the next half minute."""
    store.put(layout.interest(), encode({"kind": "interest"}))


def withdraw(store: Store) -> None:
    store.delete(layout.interest())


class Interest:
    """What one worker knows of it: one small read with each beat."""

    def __init__(self) -> None:
        self._etag = ""
        self._since = 0.0
        self.shown = False

    def look(self, store: Store, now: float) -> bool:
        """Whether somebody looks, as of this read; a store that does not answer changes nothing."""
        try:
            etag = store.get(layout.interest()).etag
        except NotFound:
            etag = ""
        except StoreError:
            return self.shown
        if etag != self._etag:
            self._etag, self._since = etag, now
        self.shown = bool(etag) and now - self._since < STILL
        return self.shown
