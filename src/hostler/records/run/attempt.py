"""An attempt at a run, from its claim to its end: writes the claim, and its holder's entries.

The holder reads entry head+1 with each beat: absent means still mine and nobody wants me to stop. One
whose last look is half a lease old looks again before its next COMMIT, delete or end. An attempt reads its
log by itself: what another reader in this process has seen, it has not answered yet. A close whose answer
was lost is known by its token when it is met again. A run is not given back over a person's stop request:
it ends, or pauses.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hostler.errors import Fenced
from hostler.records import layout
from hostler.records.body import Record, encode
from hostler.records.run import log
from hostler.records.run.entries import Claim, Outcome, closing
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import RunState, fold
from hostler.spec.states import PAUSED, STOPPED
from hostler.store import Store
from hostler.store.base import put_again

Clock = Callable[[], float]


class Attempt:
    """A claim that stands, as its holder knows it. Safe to use from several threads."""

    def __init__(self, store: Store, run_log: RunLog, lease: float, clock: Clock) -> None:
        self._store, self._log, self._lease, self._clock = store, run_log, lease, clock
        self._looked = clock()
        self._lock = threading.RLock()
        self._over = False
        self._token = os.urandom(8).hex()  # of the entry that closes this attempt
        self._closed = 0  # its number, once it stands
        self._folded = (0, RunState())  # how many entries were folded, and what they come to
        self.number = run_log.head
        self.key: RunKey = run_log.key

    @property
    def state(self) -> RunState:
        with self._lock:
            if self._folded[0] != self._log.head:  # entries are only added, and never change
                self._folded = self._log.head, fold(self._log.entries)
            return self._folded[1]

    @property
    def ended(self) -> tuple[int, Record] | None:
        """The end that this attempt has given its run, and its number."""
        with self._lock:
            closing = self._log.entries[self._closed - 1] if self._closed else {}
            return (self._closed, closing) if closing.get("kind") == log.END else None

    def look(self) -> str | None:
        """The reason of a stop request that came after our claim, or None. Fenced if it is no longer ours."""
        with self._lock:
            if self._closed:
                return None
            stamp = self._clock()
            self._log.read_on()
            self._check()
            self._looked = stamp
            return self.state.stop

    def guard(self) -> None:
        """Before a COMMIT, a delete or an end: look again if the last look is half a lease old."""
        with self._lock:
            if self._over:
                raise Fenced(f"{self.key.run}: attempt {self.number} is over")
            if self._clock() - self._looked >= self._lease / 2:
                self.look()

    def release(self, then: str, **facts: Any) -> None:
        """Give the run back: `then` is queued or paused."""
        self.close(Outcome(then, **facts))

    def end(self, state: str, **facts: Any) -> None:
        """Close the run for good, and leave the copy that readers use."""
        self.close(Outcome(state, **facts))

    def close(self, outcome: Outcome) -> None:
        """Append how it ended, once however often it is asked for; an end leaves its copy."""
        with self._lock:
            self._check()
            while not self._closed:
                answer = answering(outcome, self.state.stop)
                self._log.append({**closing(self.number, answer).record(), "token": self._token})
                self._check()
            entry = self._log.entries[self._closed - 1]
            if entry["kind"] == log.END:
                copy_end(self._store, self.key, self._closed, entry)

    def _check(self) -> None:
        """Only a person's stop request may stand between our claim and our close, whoever read it when."""
        for k, entry in enumerate(self._log.entries[self.number :], start=self.number + 1):
            if entry.get("token") == self._token:
                self._closed, self._over = k, True
                return
            if log.closes(entry):
                self._over = True
                raise Fenced(f"{self.key.run}: attempt {self.number} was taken over")


def answering(outcome: Outcome, stop: str | None) -> Outcome:
    """The outcome in view of a stop request that came before it. Pure."""
    if stop is None or outcome.ends:
        return outcome
    return replace(outcome, state=STOPPED if stop == log.PERSON else PAUSED, why=stop)


def claim(store: Store, run_log: RunLog, lease: float, clock: Clock, entry: Claim) -> Attempt | None:
    """Take the run as this log leaves it; None if another was faster."""
    if not run_log.append(entry.record(), read=False):
        return None
    return Attempt(store, run_log.copy(), lease, clock)


def copy_end(store: Store, key: RunKey, k: int, entry: Record) -> None:
    """Copy the end that is entry k for readers. It decides nothing, so whoever finds it missing writes it."""
    known = layout.log_entry(key.sweep, key.run, k)
    put_again(store, encode(entry), layout.end(key.sweep, key.run, k), known)
