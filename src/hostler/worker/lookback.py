"""Sweeps that this worker has had runs of: once it has gone on to others, or has nothing to do, they may be
over, and people are told then, not when the worker leaves.

It looks in a thread of its own, one at a time: a message may take its time.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection
from dataclasses import dataclass, field

from hostler.worker.closer import Closer
from hostler.worker.machine import Machine


@dataclass
class Lookback:
    _m: Machine
    _had: dict[str, None] = field(default_factory=dict)
    _due: dict[str, None] = field(default_factory=dict)  # not looked at since a run of it ended here
    _thread: threading.Thread | None = None
    _looked: float = -math.inf

    def had(self, sweep: str) -> None:
        """A run of it is over here."""
        self._had[sweep] = self._due[sweep] = None

    def look(self, running: Collection[str]) -> None:
        """Look at those that nothing runs of here any more, once in a beat at most."""
        names = [name for name in self._due if name not in running] if self._due else []
        if not names or (self._thread and self._thread.is_alive()):
            return
        now = self._m.clock()
        if now - self._looked < self._m.timing.beat:
            return
        self._looked = now
        for name in names:
            del self._due[name]
        self._thread = threading.Thread(target=self._close, args=(names, False), name="closer", daemon=True)
        self._thread.start()

    def finish(self, *, capped: bool) -> None:
        """The worker leaves; `capped`: its machines may cost no more, of whatever they had people hear."""
        if self._thread:
            self._thread.join()
        self._m.compactor.finish(self._m.store, self._m.say)
        self._close(list(self._had if capped else self._due), capped)

    def _close(self, names: Collection[str], capped: bool) -> None:
        Closer(self._m.store, self._m.say, self._m.wall).look(names, capped=capped)
