"""The status of one attempt: asked to stop, taken over, or still ours to deliver.

Set by the threads that beat and look, read by the one that carries the run out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from typing import Protocol, TypeVar

from hostler.errors import Fenced, StoreError
from hostler.records.run.log import RunKey
from hostler.settings import Timing
from hostler.store import NotFound

T = TypeVar("T")


class Guarded(Protocol):
    """An attempt, whoever leads it."""

    key: RunKey

    def guard(self) -> None: ...


class AttemptStatus:
    def __init__(
        self,
        attempt: Guarded,
        timing: Timing,
        clock: Callable[[], float],
        say: Callable[[str], None],
        urgent: Collection[str] = (),
        patience: float | None = None,
        rest: Callable[[float], None] = time.sleep,
    ) -> None:
        """`urgent`: reasons of a stop after which the store is waited for no longer than the grace.
        `patience`: seconds that it is waited for at all; None: as long as the run is ours. `rest`: sleeps
        between two tries."""
        self._attempt, self._timing, self._clock, self._say = attempt, timing, clock, say
        self._urgent, self._hurried, self._patience, self._rest = urgent, False, patience, rest
        self.stop: str | None = None  # the reason of the first stop request
        self.fenced = False
        self.gave_up = False  # it had to go before the store would take what it had

    def ask(self, reason: str) -> None:
        """A stop request, from wherever: the first one's reason holds."""
        self.stop = self.stop or reason
        self._hurried = self._hurried or reason in self._urgent

    @property
    def hurried(self) -> bool:
        """Whether its worker was told to go, and has little time."""
        return self._hurried

    def check(self) -> None:
        if self.fenced:
            raise Fenced(self._attempt.key.run)

    def guard(self) -> None:
        """Before a COMMIT, a delete or an end."""
        self.check()
        self._attempt.guard()

    def deliver(self, act: Callable[[], T]) -> T:
        """Do it with the store, however long that takes to answer again, while the run is ours. A worker that
        was told to go waits no longer than the grace: another one takes the run from its last checkpoint."""
        wait, begun = self._timing.wait_min, self._clock()
        while True:
            try:
                return act()
            except NotFound:
                raise
            except StoreError as error:
                waited = self._clock() - begun
                self.gave_up = self._hurried and waited >= self._timing.grace
                if self.fenced or self.gave_up:
                    raise Fenced(self._attempt.key.run) from None
                if self._patience is not None and waited >= self._patience:
                    raise
                self._say(f"{self._attempt.key.run}: {error}; trying again")
                self._rest(wait)
                wait = min(wait * 2, self._timing.wait_max)
