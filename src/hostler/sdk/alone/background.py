"""Two threads of a run by hand: one beats, one brings points and checkpoints to the store.

The training never waits for the store: what cannot be delivered lies on the local disk, and goes with the
next try, or with the next start of the script on this machine.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from hostler.attempt.delivery import Delivery, holds
from hostler.attempt.heartbeat import Heartbeat
from hostler.errors import Fenced
from hostler.records.interest import Interest
from hostler.settings import Timing
from hostler.spec.job import Checkpointing

FIRST = 0.2  # seconds before a thread first does its work: a run that is over by then needs none


class Background:
    def __init__(
        self,
        delivery: Delivery,
        session: str,
        policy: Checkpointing,
        timing: Timing,
        interest: Interest,
        *,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._delivery, self._policy, self._timing = delivery, policy, timing
        self._say, self._clock = say, clock
        facts = {"by_hand": True, "only": [delivery.attempt.key.sweep]}
        self.heartbeat = Heartbeat(
            delivery.store, session, timing, facts, clock, interest, self._tell_trouble
        )
        self.heartbeat.hold(delivery)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="hostler-delivery", daemon=True)
        self._said: set[str] = set()  # what was wrong with the store
        self._ticked = clock()
        self._ran_since = float("-inf")  # this process was stopped, or starved, before
        if delivery.restored:
            self.make_saver()

    def start(self) -> None:
        """The first beat may come a moment late: a claim without one is a heartbeat that stands still."""
        self.heartbeat.start(FIRST)
        self._thread.start()

    def halt(self) -> None:
        """No thread does anything after this."""
        self._over.set()
        self.heartbeat.stop()
        self._thread.join()

    def make_saver(self) -> None:
        """Where there is something to save."""
        delivery = self._delivery
        if delivery.saver is None and (delivery.restored or holds(delivery.folder.checkpoint)):
            from hostler.sdk.alone import saving  # a run that only logs needs nothing of it

            delivery.saver = saving.living(
                delivery, self._policy, self._timing, steady=self._steady, say=self._say
            )

    def _loop(self) -> None:
        every = min(0.5, self._timing.flush)
        wait = min(FIRST, every)
        while not self._over.wait(wait) and not self._delivery.status.fenced:
            wait = every
            if self._clock() - self._ticked >= self._timing.settle:
                self._ran_since = self._clock()
            self._try(self._tick)
            self._ticked = self._clock()

    def _steady(self) -> bool:
        """Whether this process has run without a break for long enough: a write that it was stopped in goes
        on only now."""
        return self._clock() - self._ran_since >= self._timing.settle

    def _tick(self) -> None:
        self._delivery.uploader.tick()
        self.make_saver()
        if self._delivery.saver:
            self._delivery.saver.tick()

    def _try(self, act: Callable[[], None]) -> None:
        try:
            act()
        except Fenced:
            self._delivery.fence()
        except Exception as error:  # the store's trouble, or the disk's: said once, and tried again
            self._tell_trouble(error)

    def _tell_trouble(self, error: Exception) -> None:
        if str(error) not in self._said:
            self._said.add(str(error))
            self._say(f"{self._delivery.store.url}: {error}; the training goes on, and it is tried again")
