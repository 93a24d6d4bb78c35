"""The thread that looks at the store for all open pages, and tells the workers while there are any."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from hostler.analysis.board.live import LiveStore
from hostler.analysis.damage_report import warn
from hostler.attempt import dead_scripts
from hostler.errors import StoreError
from hostler.records import interest
from hostler.store import Store
from hostler.store.registry import is_folder

NEAR, FAR = 0.5, 5.0  # seconds between two looks: at a folder, at a store that is far or paid by request
AT_ONCE = 32  # reads of a bucket
MOMENT = 0.4  # seconds a first view waits for the whole of it
STEP = 0.01  # seconds between two questions how far it is
QUIET = 0.15  # seconds without a request after which the reading goes on
OPENING = 0.2  # seconds that a browser has for its first request
GIVEN = 0.5  # seconds that one look gives to requests at most
SWITCH = 0.0005  # seconds after which the thread that reads gives way to requests
SHARE = 5  # a look that takes long is taken more rarely: one part looking, so many parts waiting


@contextmanager
def watching(store: Store) -> Iterator[Watcher]:
    """A watcher that reads a first screen while the server is loaded, and the rest once that is said to be
    open."""
    sys.setswitchinterval(SWITCH)
    watcher = Watcher(store, near=is_folder(store.url) or store.url.startswith("memory:"))
    watcher.loading = True
    watcher.start()
    try:
        yield watcher
    finally:
        watcher.close()


class Watcher:
    """`viewers` is how many pages are open; without any the store is left alone."""

    def __init__(self, store: Store, *, near: bool, clock: Callable[[], float] = time.monotonic) -> None:
        self.live = LiveStore(store, clock, at_once=1 if near else AT_ONCE, give_way=self._give_way)
        self._noticed, self._given = -QUIET, 0.0
        self.loading = False  # the server is not there yet: what fills a screen is enough
        self._store, self._clock = store, clock
        self._every = NEAR if near else FAR
        self._viewers = 0
        self._lock = threading.Lock()
        self._wake, self._over, self.ready = threading.Event(), threading.Event(), threading.Event()
        self._shown = -interest.EVERY
        self.writable = True
        self._thread = threading.Thread(target=self._loop, name="watcher", daemon=True)

    def start(self) -> None:
        """Begin to read, unless that has begun."""
        if self._thread.ident is None:
            self._thread.start()

    def close(self) -> None:
        """Nothing more is looked at; open streams end."""
        self._over.set()
        self._wake.set()

    def stop(self) -> None:
        self.close()
        self._thread.join()
        self._withdraw()

    @property
    def over(self) -> bool:
        return self._over.is_set()

    def wait(self, patience: float, sweep: str = "") -> None:
        """Until the first look is over; no longer than a moment if some of it can be shown before, and not at
        all if it is some of the sweep that is asked for."""
        until = self._clock() + patience
        moment = self._clock() + MOMENT
        self.live.asked = sweep or self.live.asked
        while not self.has_begun(sweep) and not self.ready.wait(STEP) and self._clock() < until:
            if self._clock() > moment and not sweep and any(map(self.has_begun, list(self.live.sweeps))):
                return

    def has_begun(self, sweep: str) -> bool:
        """Whether some of a sweep can be shown."""
        live_sweep = self.live.sweeps.get(sweep)
        return live_sweep is not None and (live_sweep.whole or bool(live_sweep.rows))

    def notice(self) -> None:
        """Note a request that somebody waits for: one thread at a time runs, and a look gives way to it."""
        self._noticed = max(self._noticed, self._clock())

    def opened(self) -> None:
        """The address is said: whoever it was said to opens it now."""
        self._noticed = self._clock() + OPENING
        self.loading = False

    def _give_way(self) -> None:
        while self._may_wait() and not self._over.is_set():
            self._over.wait(STEP)
            self._given += 0 if self.loading else STEP

    def _may_wait(self) -> bool:
        return self.loading or (self._given < GIVEN and self._clock() < self._noticed + QUIET)

    def enter(self) -> None:
        with self._lock:
            self._viewers += 1
        self._wake.set()

    def leave(self) -> None:
        with self._lock:
            self._viewers -= 1
        if not self._viewers:
            self._withdraw()

    def hurry(self) -> None:
        """Look at everything now: somebody has just changed something."""
        self.live.forget_calm()
        self._wake.set()

    def _loop(self) -> None:
        while not self._over.is_set():
            begun, self._given = self._clock(), 0.0
            if self.writable:
                dead_scripts.deliver(self._store, warn)
            self.live.look()
            if not self.ready.is_set():
                self.ready.set()
                self.live.version += 1  # pages know that this is all
            if self._viewers and self.live.sweeps:  # where nothing is, nobody sends: nothing is written there
                self._show(begun)
            took = self._clock() - begun
            self._wake.wait(max(self._every, took * SHARE) if self._viewers else None)
            self._wake.clear()

    def _show(self, now: float) -> None:
        if now - self._shown < interest.EVERY or not self.writable:
            return
        try:
            interest.show(self._store)
            self._shown = now
        except (StoreError, OSError):  # to be seen, not to be written to
            self.writable = False

    def _withdraw(self) -> None:
        if self._shown > -interest.EVERY and self.writable:
            self._shown = -interest.EVERY
            try:
                interest.withdraw(self._store)
            except (StoreError, OSError):
                return
