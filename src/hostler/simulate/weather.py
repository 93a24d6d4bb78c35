"""Losses of machines: by chance at a rate, or as recorded in a trace.

Machines have numbers; one that comes in another's place has that one's. A weather is made for one simulation.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Protocol

from hostler.frozen import dataclass
from hostler.simulate import stock
from hostler.simulate.rates import PreemptionRate
from hostler.simulate.stock import Outage, Stockouts
from hostler.simulate.times import VaryingSeconds
from hostler.simulate.trace import MachineLoss, MachineStart, Trace

Windows = Mapping[str, Sequence[Outage]]


class Weather(Protocol):
    windows: Windows  # zone → when it has none

    def loss(self, vm: int, born: float, *, spot: bool) -> MachineLoss | None:
        """The loss of the machine that costs from `born` on; None if it is never taken away."""

    def comes(self, vm: int) -> float:
        """Seconds from asking for it until it costs."""

    def boots(self, vm: int) -> float:
        """And from there until its worker looks for work."""

    def parts(self) -> float:
        """Seconds from when a worker leaves until its machine is off."""


@dataclass(frozen=True)
class Habits:
    """Durations of machines: to arrive, to boot, of the notice, to leave."""

    comes: VaryingSeconds = field(default_factory=VaryingSeconds)
    boots: VaryingSeconds = field(default_factory=VaryingSeconds)
    parts: VaryingSeconds = field(default_factory=VaryingSeconds)
    notice: float = 0.0


class ByChance:
    """`rate` holds for machines that may be taken away."""

    def __init__(self, habits: Habits, rate: PreemptionRate, windows: Windows, chance: random.Random) -> None:
        self._habits, self._hazard, self._chance = habits, rate.hazard, chance
        self.windows = windows

    def loss(self, vm: int, born: float, *, spot: bool) -> MachineLoss | None:
        if not spot or not self._hazard:
            return None
        at = born + self._chance.expovariate(self._hazard)
        return MachineLoss(vm, at, at + self._habits.notice, self._habits.notice > 0)

    def comes(self, vm: int) -> float:
        return self._habits.comes.draw(self._chance)

    def boots(self, vm: int) -> float:
        return self._habits.boots.draw(self._chance)

    def parts(self) -> float:
        return self._habits.parts.draw(self._chance)


class AsItWas:
    """Follows a trace, and the habits where the trace is silent. `zones` are the fleet's."""

    def __init__(
        self, trace: Trace, habits: Habits, chance: random.Random, zones: Sequence[str] = ()
    ) -> None:
        self._habits, self._chance = habits, chance
        self._losses: dict[int, list[MachineLoss]] = defaultdict(list)
        for loss in trace.losses:
            self._losses[loss.vm].append(loss)
        self._boots: dict[int, deque[float]] = defaultdict(deque)
        for start in trace.starts:
            self._boots[start.vm].append(self._took(start))
        self.windows: Windows = stock.windows_of(
            Stockouts(trace.outages), [*zones, *(outage.zone for outage in trace.outages)], chance, 0
        )

    def loss(self, vm: int, born: float, *, spot: bool) -> MachineLoss | None:
        own = self._losses[vm]
        n = bisect_right(own, born, key=lambda one: one.gone)
        return own[n] if n < len(own) else None

    def _took(self, start: MachineStart) -> float:
        """Boot time of a machine; one lost before its worker began would have taken longer."""
        if start.boots is not None:
            return start.boots
        loss = self.loss(start.vm, start.at, spot=True)
        return max(self._habits.boots.draw(self._chance), loss.gone - start.at if loss else 0.0)

    def comes(self, vm: int) -> float:
        return self._habits.comes.draw(self._chance)

    def boots(self, vm: int) -> float:
        own = self._boots[vm]
        return own.popleft() if own else self._habits.boots.draw(self._chance)

    def parts(self) -> float:
        return self._habits.parts.draw(self._chance)


def habits_of(trace: Trace, otherwise: Habits) -> Habits:
    """As the trace shows them."""
    boots = tuple(machine_start.boots for machine_start in trace.starts if machine_start.boots is not None)
    parts = tuple(leaf.gone - leaf.at for leaf in trace.leaves)
    comes = tuple(_delays(trace))
    return Habits(
        VaryingSeconds(comes) if comes else otherwise.comes,
        VaryingSeconds(boots) if boots else otherwise.boots,
        VaryingSeconds(parts) if parts else otherwise.parts,
        otherwise.notice,
    )


def _delays(trace: Trace) -> list[float]:
    """From when a machine was wanted until it came; those that waited for their zone do not count."""
    since: dict[int, float] = defaultdict(float)
    happened: list[MachineStart | MachineLoss] = [*trace.starts, *trace.losses]
    free, waited = list[float](), list[float]()
    for one in sorted(happened, key=lambda one: one.at):
        if isinstance(one, MachineLoss):
            since[one.vm] = one.gone
            continue
        own = [out for out in trace.outages if out.zone in (one.zone, "*")]
        held_up = any(out.begins < one.at and since[one.vm] < out.ends for out in own)
        (waited if held_up else free).append(max(0.0, one.at - since[one.vm]))
    return free or ([min(waited)] if waited else [])
