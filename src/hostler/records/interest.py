"""A marker that an open dashboard or a followed log rewrites; workers that see it send news with each beat.

No clock is compared: a marker whose etag has not changed for a while, as its reader has seen it, is one that
was left behind.
"""

from __future__ import annotations

from collections.abc import Callable

from hostler.errors import StoreError, StoreUnreachable
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


class Looking:
    """Somebody who looks, as often as he does: it is said every so often. A store that may not be written to
    is looked at all the same."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store, self._clock = store, clock
        self._shown: float | None = None
        self._mute = False

    def __enter__(self) -> Looking:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown is not None:
            self._try(withdraw)

    def look(self) -> None:
        now = self._clock()
        if not self._mute and (self._shown is None or now - self._shown >= EVERY):
            self._shown = now
            self._try(show)

    def _try(self, act: Callable[[Store], None]) -> None:
        try:
            act(self._store)
        except StoreUnreachable:
            return  # the next one, then
        except StoreError:
            self._mute = True


class Interest:
    """A worker's knowledge of the marker: one small read with each beat."""

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
