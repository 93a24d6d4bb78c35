"""Many simulations: each fleet with each interval between checkpoints, with many chances."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from hostler.simulate import stock
from hostler.simulate.fleets import Setting
from hostler.simulate.outcome import Outcome, Summary, summarize
from hostler.simulate.stock import Stockouts
from hostler.simulate.trace import Trace, of_teams
from hostler.simulate.weather import AsItWas, ByChance, Weather
from hostler.simulate.world import World
from hostler.spec.units import show_duration

WORK = 2_000_000  # machines and runs that are simulated in all, where nobody says how often
FEWEST, MOST = 20, 200


@dataclass(frozen=True)
class Sky:
    """What befalls all fleets: a trace, or stockouts by chance beside each fleet's own rate."""

    trace: Trace | None = None
    stockouts: Stockouts = field(default_factory=Stockouts)


def seeds_for(found: Sequence[Setting], intervals: int) -> int:
    """How often each is simulated: a small one often enough for a smooth interval."""
    size = sum(one.scene.runs + one.scene.workers for one in found) * max(1, intervals)
    return min(MOST, max(FEWEST, WORK // max(1, size)))


def compare(
    found: Sequence[Setting],
    intervals: Sequence[float],
    sky: Sky,
    seeds: int,
    tell: Callable[[str], None] = lambda line: None,
) -> list[Summary]:
    """`tell` hears what is simulated next. The same seed is the same luck for every fleet and interval."""
    made = []
    for one in found:
        for every in intervals:
            tell(f"{one.scene.fleet}, a checkpoint every {show_duration(every)}")
            outcomes = _outcomes(replace(one, scene=replace(one.scene, every=every)), sky, seeds)
            made.append(summarize(one.scene.fleet, every, one.scene.runs, outcomes, priced=one.priced))
    return made


def _outcomes(one: Setting, sky: Sky, seeds: int) -> list[Outcome]:
    found = []
    for seed in range(seeds):
        found.append(World(one.scene, weather(one, sky, seed), 2 * seed + 1).run())
        if found[-1].endless:  # nor with other luck
            break
    return found


def weather(one: Setting, sky: Sky, seed: int) -> Weather:
    chance = random.Random(2 * seed)
    if sky.trace is not None:
        return AsItWas(of_teams(sky.trace, one.scene.job.resources.nodes), one.habits, chance, one.zones)
    windows = stock.windows_of(sky.stockouts, one.zones, chance, _far(one))
    return ByChance(one.habits, one.rate, windows, chance)


def _far(one: Setting) -> float:
    """Long after all is over, however slow."""
    work = one.scene.length.mean * one.scene.runs / (one.scene.workers * one.scene.seats)
    return 20 * (work + 3600.0)
