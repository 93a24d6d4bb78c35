"""The worker's heartbeat, which also watches others', and how long it goes on with a silent store.

If its thread breaks, `beats` says so: a worker must not go on without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hostler.attempt.heartbeat import Heartbeat
from hostler.errors import StoreError, StoreGone
from hostler.records.interest import Interest
from hostler.settings import Timing
from hostler.store import Store
from hostler.worker.claim.session_watch import SessionWatch
from hostler.worker.run.conclude import UNREACHABLE


def patience(error: StoreError, timing: Timing) -> float:
    """How long a worker goes on with a store that says this. Pure. A bucket that is gone stays gone."""
    return timing.lease if isinstance(error, StoreGone) else max(timing.lease, timing.storeless)


class Pulse(Heartbeat):
    def __init__(
        self,
        store: Store,
        session: str,
        timing: Timing,
        facts: dict[str, Any],
        clock: Callable[[], float],
        interest: Interest | None = None,
        watch: SessionWatch | None = None,
    ) -> None:
        super().__init__(store, session, timing, facts, clock, interest, self._went_unanswered)
        self._watch = watch
        self.lost: StoreError | None = None  # what it said last, once there is no use in waiting for it

    def beat(self) -> None:
        """Beat, look at each run held, and watch the other workers."""
        super().beat()
        if self._watch:
            self._watch.beat()

    def _went_unanswered(self, error: StoreError) -> None:
        silent = self._clock() - self.reached
        if silent >= self._timing.lease:
            for run in self.held:
                run.stop(UNREACHABLE)
        if silent >= patience(error, self._timing):
            self.lost = error
