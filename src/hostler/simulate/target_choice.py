"""Chooses fleet and number of workers so that a sweep is done by a moment, for the least money.

Each size of each fleet is simulated with many chances. One will do if it is in time, and within its money, in
nineteen of twenty of them. Where none will do, the two nearest are named: the cheapest that is in time, or
the quickest where none is; and the quickest that the money allows, or the cheapest where none is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence

from hostler.frozen import dataclass
from hostler.simulate.bundles import bundled
from hostler.simulate.fleets import Setting
from hostler.simulate.outcome import SimulationSummary
from hostler.simulate.study import Sky, compare
from hostler.simulate.times import VaryingSeconds

WIDE = 16  # sizes of a fleet that are looked at where nothing will do
LESS = 0.02  # of time or money: less is the same
FAR = 2  # sizes beside the smallest that will do, which are looked at as well


@dataclass(frozen=True)
class SizedFleet:
    """A fleet with so many workers, simulated."""

    fleet: str
    workers: int
    setting: Setting
    result: SimulationSummary

    @property
    def cost(self) -> float | None:
        """None: its price is not known."""
        return self.result.cost.mean if self.result.cost else None

    @property
    def dearest(self) -> float | None:
        """Cost in nineteen of twenty."""
        return self.result.cost.high if self.result.cost else None

    @property
    def latest(self) -> float:
        """Seconds in nineteen of twenty."""
        return self.result.seconds.high if self.result.finishes else math.inf


@dataclass(frozen=True)
class TargetChoice:
    """`chosen`, or, where nothing will do, the nearest that can be: two, where there are two."""

    chosen: SizedFleet | None
    nearest: tuple[SizedFleet, ...] = ()


def sizes(runs: int, most: int, seats: int = 1) -> list[int]:
    """Numbers of workers worth a look, ascending: those with which all have about as many runs, so that none
    idles at the end. Pure."""
    most = max(1, min(most, math.ceil(runs / seats)))
    rounds = {max(1, math.ceil(runs / (seats * k))) for k in _rounds(math.ceil(runs / seats))}
    return sorted({1, most, *(n for n in rounds if n <= most)})


def _rounds(most: int) -> Iterator[int]:
    """1, 2, 3 … and beyond twenty in steps of a tenth."""
    k = 1
    while k <= most:
        yield k
        k = max(k + 1, int(k * 1.1)) if k > 20 else k + 1


def choose(
    fleets: Sequence[tuple[Sequence[int], Callable[[int], Setting]]],
    seconds: float,
    under: float | None,
    sky: Sky,
    seeds: int,
    *,
    widely: bool = False,
) -> TargetChoice:
    """`fleets`: the sizes of each, and what makes one of them a setting. `seconds` until it must be done.
    `widely`: sizes of all kinds are looked at, not those that are just in time."""
    sized_fleets: list[SizedFleet] = []
    for able, made in fleets:
        if widely:
            able = able[:: 1 + len(able) // WIDE]
        sized_fleets += _near(able, made, seconds, sky, seeds, len(able) if widely else FAR)
    return pick(sized_fleets, seconds, under)


def _near(
    able: Sequence[int], made: Callable[[int], Setting], seconds: float, sky: Sky, seeds: int, far: int
) -> list[SizedFleet]:
    """Sizes of one fleet around the smallest that is in time, and the largest: more workers are never later,
    but for chance."""
    known: dict[int, SizedFleet] = {}

    def look(at: int) -> SizedFleet:
        if at not in known:
            setting = made(able[at])
            large = bundled(setting)
            [result] = compare([large], [large.scene.every], sky, seeds)
            known[at] = SizedFleet(setting.scene.fleet, able[at], setting, result)
        return known[at]

    low, high = 0, len(able) - 1
    while low < high:
        middle = (low + high) // 2
        if look(middle).latest <= seconds:
            high = middle
        else:
            low = middle + 1
    for at in range(max(0, low - far), min(len(able), low + far + 1)):
        look(at)
    look(len(able) - 1)
    return list(known.values())


def comparable(found: Sequence[Setting], under: float | None) -> tuple[list[Setting], list[str]]:
    """Settings whose cost is known, and names of the fleets that are left out: one without a price is not a
    free one. All of them where none has a price, unless there is money to be kept. Pure."""
    priced = [setting for setting in found if setting.priced]
    if not priced and under is None:
        return list(found), []
    return priced, list(dict.fromkeys(setting.scene.fleet for setting in found if not setting.priced))


def pick(found: Sequence[SizedFleet], seconds: float, under: float | None) -> TargetChoice:
    """The cheapest that is in time and within the money, or the two nearest; where no cost is known, the
    quickest. Pure."""
    money = math.inf if under is None else under
    able = [one for one in found if one.latest < math.inf]
    in_time = [one for one in able if one.latest <= seconds]
    in_money = [one for one in able if (one.dearest or 0.0) <= money]
    both = [one for one in in_time if one in in_money]
    if both:
        return TargetChoice(min(both, key=lambda one: (one.cost or 0.0, one.latest)))
    return TargetChoice(None, _nearest(able, in_time, in_money))


def _nearest(
    able: Sequence[SizedFleet], in_time: Sequence[SizedFleet], in_money: Sequence[SizedFleet]
) -> tuple[SizedFleet, ...]:
    """The nearest on the side of time and on that of money. Where both are the same, as there is but one
    bound, the next one beside it that is quicker, or cheaper."""
    if not able:
        return ()
    first = min(in_time, key=_cost) if in_time else min(able, key=_time)
    second = min(in_money, key=_time) if in_money else min(able, key=_cost)
    if first is not second:
        return first, second
    if in_time:
        beside = min(
            (fleet for fleet in able if fleet.latest < (1 - LESS) * first.latest), key=_cost, default=None
        )
    else:
        cheaper = (fleet for fleet in able if _cost(fleet) < (1 - LESS) * _cost(first))
        beside = min(cheaper, key=_time, default=None)
    return (first, beside) if beside else (first,)


def _cost(one: SizedFleet) -> float:
    return one.dearest or 0.0


def _time(one: SizedFleet) -> float:
    return one.latest


def boot_of(setting: Setting) -> float:
    """Seconds from asking for a machine of this fleet until it works. Pure."""
    habits = setting.habits
    both: Sequence[VaryingSeconds] = (habits.comes, habits.boots)
    return sum(seconds.mean for seconds in both)
