"""Schedules acts at emulated times, on one thread, in order, under the one lock."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from hostler.emulators.gce.clock import Clock


@dataclass(order=True)
class Entry:
    at: float
    order: int
    act: Callable[[], None] = field(compare=False)
    cancelled: bool = field(default=False, compare=False)

    def cancel(self) -> None:
        self.cancelled = True


class Agenda:
    def __init__(self, clock: Clock, lock: threading.RLock) -> None:
        self._clock, self._lock = clock, lock
        self._entries: list[Entry] = []
        self._count = itertools.count()
        self._changed = threading.Condition()
        self._ended = False
        self._thread = threading.Thread(target=self._run, name="gce-agenda", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Nothing happens any more once this returns."""
        with self._changed:
            self._ended = True
            self._changed.notify()
        self._thread.join()

    def after(self, seconds: float, act: Callable[[], None]) -> Entry:
        return self.at(self._clock.now() + seconds, act)

    def at(self, moment: float, act: Callable[[], None]) -> Entry:
        entry = Entry(moment, next(self._count), act)
        with self._changed:
            heapq.heappush(self._entries, entry)
            self._changed.notify()
        return entry

    def _run(self) -> None:
        while (entry := self._next()) is not None:
            with self._lock:
                if not entry.cancelled and not self._ended:
                    entry.act()

    def _next(self) -> Entry | None:
        """The entry whose time has come, waited for; None at the end."""
        with self._changed:
            while not self._ended:
                left = self._entries[0].at - self._clock.now() if self._entries else None
                if left is not None and left <= 0:
                    return heapq.heappop(self._entries)
                self._changed.wait(None if left is None else self._clock.real(left))
        return None
