"""The heartbeat of a process: a thread that beats, and looks at the log of every run held here.

It is a thread of its own so that no upload delays it. What it finds it leaves as flags, for the threads that
carry the runs out. A log that cannot be read on is no longer ours.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from hostler.errors import DamagedError, Fenced, NewerFormatError, StoreError
from hostler.records.interest import Interest
from hostler.records.run import heartbeats
from hostler.records.run.log import RunKey
from hostler.settings import Timing
from hostler.store import Store


class Looked(Protocol):
    """The attempt of a run held here: as its holder knows it, or one who follows."""

    key: RunKey

    def look(self) -> str | None: ...


class Held(Protocol):
    """A run held here, as the heartbeat needs it."""

    @property
    def attempt(self) -> Looked: ...

    def stop(self, reason: str) -> None: ...

    def fence(self) -> None: ...

    def facts(self) -> dict[str, Any]: ...


class Heartbeat:
    def __init__(
        self,
        store: Store,
        session: str,
        timing: Timing,
        facts: Mapping[str, Any],
        clock: Callable[[], float],
        interest: Interest | None = None,
        unanswered: Callable[[StoreError], None] = lambda error: None,
    ) -> None:
        """`unanswered` hears of each beat that the store did not take."""
        self._store, self._session, self._timing = store, session, timing
        self._facts, self._clock, self._unanswered = facts, clock, unanswered
        self._interest = interest or Interest()
        self._held: list[Held] = []
        self._lock = threading.Lock()
        self._sequence = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="heartbeat", daemon=True)
        self._first = timing.beat
        self.reached = clock()  # when the store last answered

    def start(self, first: float | None = None) -> None:
        """Beat now, or after `first` seconds, and then with every beat."""
        if first is None:
            self.beat()
        else:
            self._first = min(first, self._timing.beat)
        self._thread.start()

    def stop(self) -> None:
        self._done.set()
        self._thread.join()

    def silence(self) -> None:
        """Take the heartbeat away, where there was one."""
        if self._sequence:
            heartbeats.silence(self._store, self._session)

    @property
    def beats(self) -> bool:
        return self._thread.is_alive()

    def hold(self, held: Held) -> None:
        with self._lock:
            self._held.append(held)

    def drop(self, held: Held) -> None:
        with self._lock:
            self._held = [run for run in self._held if run is not held]

    @property
    def held(self) -> list[Held]:
        with self._lock:
            return list(self._held)

    def beat(self) -> None:
        """Beat once, then look at each run held."""
        self._sequence += 1
        held = self.held
        runs = {run.attempt.key.run: run.facts() for run in held}
        heartbeats.beat(self._store, self._session, self._sequence, {**self._facts, "runs": runs})
        self.reached = self._clock()
        for run in held:
            self._look(run)
        if held:
            self._interest.look(self._store, self._clock())

    def _loop(self) -> None:
        wait = self._first
        while not self._done.wait(wait):
            wait = self._timing.beat
            try:
                self.beat()
            except StoreError as error:
                self._unanswered(error)

    def _look(self, held: Held) -> None:
        try:
            reason = held.attempt.look()
        except (Fenced, DamagedError, NewerFormatError):
            held.fence()
            return
        if reason:
            held.stop(reason)
