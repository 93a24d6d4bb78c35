"""Decides when a checkpoint is due: by time, by steps, at each epoch, or as often as pays."""

from __future__ import annotations

from collections.abc import Callable

from hostler.frozen import dataclass
from hostler.sdk.checkpoint.interval import Cost, choose


@dataclass(frozen=True)
class SavePolicy:
    """Neither seconds nor steps: as often as pays, within `least` and `most`."""

    every_seconds: float | None = None
    every_steps: int | None = None
    each_epoch: bool = True
    keep: int = 2
    between_preemptions: float = 2 * 3600.0  # what is assumed of machines that can be taken away
    least: float = 10.0
    most: float = 600.0

    @property
    def automatic(self) -> bool:
        return self.every_seconds is None and self.every_steps is None


class Schedule:
    """Says when the next checkpoint is due. Cheap enough to be asked at every step."""

    def __init__(self, policy: SavePolicy, clock: Callable[[], float], say: Callable[[str], None]) -> None:
        self._policy, self._clock, self._say = policy, clock, say
        self._seconds = policy.least if policy.automatic else policy.every_seconds
        self._last_time = clock()
        self._last_step = 0
        self._said = 0.0

    def due(self, step: int) -> bool:
        every = self._policy.every_steps
        if every is not None and step // every > self._last_step // every:
            return True
        return self._seconds is not None and self._clock() - self._last_time >= self._seconds

    def began(self, step: int) -> None:
        """A checkpoint of this step is being made."""
        self._last_time, self._last_step = self._clock(), step

    def cost(self, cost: Cost) -> None:
        """Record a checkpoint's cost; a chosen interval is printed, and again after a large change."""
        policy = self._policy
        if not policy.automatic:
            return
        chosen = choose(cost, between=policy.between_preemptions, least=policy.least, most=policy.most)
        self._seconds = chosen.seconds
        if not self._said or not 0.5 <= chosen.seconds / self._said <= 2:
            self._said = chosen.seconds
            self._say(chosen.said)
