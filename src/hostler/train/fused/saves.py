"""When the trainings of a group are saved, all at one step: by the same rule as one alone, with the cost of
all of them."""

from __future__ import annotations

import time
from collections.abc import Callable

from hostler.sdk.checkpoint.interval import Cost
from hostler.sdk.checkpoint.policy import Schedule
from hostler.sdk.checkpoint.state import PAYS
from hostler.sdk.saving import policy_of


class Saves:
    def __init__(self, every: float | str | None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._policy, self._clock = policy_of(every), clock
        self._schedule = Schedule(self._policy, clock, lambda line: None)
        self._saved, self._cost = float("-inf"), 0.0

    def due(self, step: int, *, epoch_ended: bool) -> bool:
        if self._schedule.due(step):
            return True
        rested = self._clock() - self._saved >= PAYS * self._cost
        return epoch_ended and self._policy.each_epoch and rested

    def done(self, step: int, save: Callable[[], None]) -> None:
        """Save, and learn what it costs."""
        begun = self._clock()
        self._schedule.began(step)
        save()
        self._saved = self._clock()
        self._cost = self._saved - begun
        self._schedule.cost(Cost(self._cost, 0.0))
