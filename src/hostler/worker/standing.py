"""Where one attempt stands with the others: asked to stop, taken over, or still ours to deliver.

Set from the threads that beat and look, read by the one that carries the run out.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

from hostler.errors import Fenced, StoreError
from hostler.records.log import RunKey
from hostler.settings import Timing
from hostler.store import NotFound
from hostler.worker import conclude

T = TypeVar("T")


class Guarded(Protocol):
    """An attempt, whoever leads it."""

    key: RunKey

    def guard(self) -> None: ...


class Standing:
    def __init__(
        self, attempt: Guarded, timing: Timing, clock: Callable[[], float], say: Callable[[str], None]
    ) -> None:
        self._attempt, self._timing, self._clock, self._say = attempt, timing, clock, say
        self.stop: str | None = None  # the reason of the first stop request
        self._going = False  # one of them said that the worker itself has to go
        self.fenced = False
        self.gave_up = False  # it had to go before the store would take what it had

    def ask(self, reason: str) -> None:
        """A stop request, from wherever: the first one's reason holds."""
        self.stop = self.stop or reason
        self._going = self._going or reason in conclude.GOING

    def check(self) -> None:
        if self.fenced:
            raise Fenced(self._attempt.key.run)

    def guard(self) -> None:
        """Before a COMMIT, a delete or an end."""
        self.check()
        self._attempt.guard()

    def deliver(self, act: Callable[[], T]) -> T:
        """Do it with the store, however long it takes to answer again, while the run is ours. A worker that
        was told to go waits no longer than the grace: another one takes the run from its last checkpoint."""
        wait, begun = self._timing.wait_min, self._clock()
        while True:
            try:
                return act()
            except NotFound:
                raise
            except StoreError as error:
                late = self._clock() - begun >= self._timing.grace
                self.gave_up = self._going and late
                if self.fenced or self.gave_up:
                    raise Fenced(self._attempt.key.run) from None
                self._say(f"{self._attempt.key.run}: {error}; trying again")
                time.sleep(wait)
                wait = min(wait * 2, self._timing.wait_max)
