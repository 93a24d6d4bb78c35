"""The gate that runs of shared processes pass to work in this worker: only a few are through it at once.

Python runs one thread at a time. A hundred runs that all end now would hand its lock around at every call of
the system, which takes longer than all they have to do; one after the other they are through in a third of
the time. Whoever waits, for its process or for a store that does not answer, waits outside. A run that has to
go does not stop here.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

NEAR = 8  # runs at once where the store is a folder: while some wait for the disk another works
FAR = 32  # where each request waits for a network
LOOK = 1.0  # seconds after which one that waits looks whether it has to go


def width_of(url: str) -> int:
    """How many runs at once keep a store at this URL busy."""
    return FAR if "://" in url else NEAR


class Gate:
    """All methods may be called from several threads."""

    def __init__(self, width: int = NEAR, sleep: Callable[[float], None] = time.sleep) -> None:
        self._sleep = sleep
        self._places = threading.Semaphore(width)
        self._thread = threading.local()
        self._counting = threading.Lock()
        self.runs = 0  # that pass here: the more they are the rarer each is looked after

    @contextmanager
    def counted(self) -> Iterator[None]:
        """While a run of a shared process is carried out."""
        self._count(1)
        try:
            yield
        finally:
            self._count(-1)

    @contextmanager
    def passed(self, hurried: Callable[[], bool] = lambda: False) -> Iterator[None]:
        """Wait for a place and work in it; without one from the moment that it is `hurried`."""
        if self._is_through:
            yield
            return
        self._thread.hurried, self._thread.through = hurried, self._enter(hurried)
        try:
            yield
        finally:
            self._leave()

    def rest(self, seconds: float) -> None:
        """Sleep, and let another have the place meanwhile."""
        was_through = self._is_through
        self._leave()
        self._sleep(seconds)
        self._thread.through = was_through and self._enter(self._thread.hurried)

    @property
    def _is_through(self) -> bool:
        return getattr(self._thread, "through", False)

    def _enter(self, hurried: Callable[[], bool]) -> bool:
        while not hurried():
            if self._places.acquire(timeout=LOOK):
                return True
        return False

    def _count(self, more: int) -> None:
        with self._counting:
            self.runs += more

    def _leave(self) -> None:
        if self._is_through:
            self._thread.through = False
            self._places.release()
