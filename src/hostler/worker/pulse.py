"""The worker's heartbeat: a thread that beats, and looks at the log of every run held here.

It is a thread of its own so that no upload delays it. What it finds it leaves as flags, for the threads
that carry the runs out. A log that cannot be read on is no longer ours. If the thread breaks, `beats` says
so: a worker must not go on without.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Protocol

from hostler.errors import DamagedError, Fenced, NewerFormatError, StoreError, StoreGone
from hostler.records import heartbeats
from hostler.records.interest import Interest
from hostler.records.log import RunKey
from hostler.settings import Timing
from hostler.store import Store
from hostler.worker.conclude import UNREACHABLE


def patience(error: StoreError, timing: Timing) -> float:
    """How long a worker goes on with a store that says this. Pure. A bucket that is gone stays gone."""
    return timing.lease if isinstance(error, StoreGone) else max(timing.lease, timing.storeless)


class Looked(Protocol):
    """The attempt of a run held here: as its holder knows it, or one who follows."""

    key: RunKey

    def look(self) -> str | None: ...


class Held(Protocol):
    """A run held here, as the pulse needs it."""

    @property
    def attempt(self) -> Looked: ...

    def stop(self, reason: str) -> None: ...

    def fence(self) -> None: ...

    def facts(self) -> dict[str, Any]: ...


class Pulse:
    def __init__(
        self,
        store: Store,
        session: str,
        timing: Timing,
        facts: dict[str, Any],
        clock: Callable[[], float],
        interest: Interest | None = None,
    ) -> None:
        self._store, self._session, self._timing, self._facts, self._clock = (
            store,
            session,
            timing,
            facts,
            clock,
        )
        self._interest = interest or Interest()
        self._held: list[Held] = []
        self._lock = threading.Lock()
        self._sequence = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="pulse", daemon=True)
        self.reached = clock()  # when the store last answered
        self.lost: StoreError | None = None  # what it said last, once there is no use in waiting for it

    def start(self) -> None:
        self.beat()
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    @property
    def beats(self) -> bool:
        return self._thread.is_alive()

    def hold(self, held: Held) -> None:
        with self._lock:
            self._held.append(held)

    def drop(self, held: Held) -> None:
        with self._lock:
            self._held = [one for one in self._held if one is not held]

    def beat(self) -> None:
        """One beat, then one look at each run held."""
        self._sequence += 1
        with self._lock:
            held = list(self._held)
        runs = {h.attempt.key.run: h.facts() for h in held}
        heartbeats.beat(self._store, self._session, self._sequence, {**self._facts, "runs": runs})
        self.reached = self._clock()
        for each in held:
            self._look(each)
        if held:
            self._interest.look(self._store, self._clock())

    def _loop(self) -> None:
        while not self._done.wait(self._timing.beat):
            try:
                self.beat()
            except StoreError as error:
                self._unanswered(error)

    def _unanswered(self, error: StoreError) -> None:
        silent = self._clock() - self.reached
        if silent >= self._timing.lease:
            with self._lock:
                for held in self._held:
                    held.stop(UNREACHABLE)
        if silent >= patience(error, self._timing):
            self.lost = error

    def _look(self, held: Held) -> None:
        try:
            reason = held.attempt.look()
        except (Fenced, DamagedError, NewerFormatError):
            held.fence()
            return
        if reason:
            held.stop(reason)
