"""The cheapest of four machine types in random worlds, by the code that a scout decides with.

Points come with noise, warm-up and checkpoints; the machines themselves are simulated. The same decision on
emulated machines is in the walks.
"""

from __future__ import annotations

import random

from hostler.backends.capacity import MachineGroup
from hostler.cli.run.scout import ScoutLine, cheapest
from hostler.records.sweep.measured_rates import MeasuredRate, speed
from hostler.settings import Timing
from hostler.simulate.fleets import Setting
from hostler.simulate.rates import rate
from hostler.simulate.scene import Scene
from hostler.simulate.stock import Stockouts
from hostler.simulate.study import Sky, compare
from hostler.simulate.times import VaryingSeconds
from hostler.simulate.weather import Habits
from hostler.spec.job import Job

JOB = Job("sweep", ("python", "train.py"))
HABITS = Habits(VaryingSeconds((), 10, 30), VaryingSeconds((), 60, 150), VaryingSeconds((), 15, 45), 30.0)
STEPS = 2000
SPAN = 180.0  # seconds of steps that a scout sees
ZONES = ("us-central1-a", "us-east1-b", "europe-west4-a")


def watched(chance: random.Random, pace: float) -> list[tuple[float, int]]:
    """Points of a training that warms up, varies by a fifth, and stands still for checkpoints."""
    now, found = chance.uniform(10, 60), list[tuple[float, int]]()
    for step in range(1, 10_000):
        slow = 3.0 if step <= 5 else 1.0
        now += slow * chance.gauss(1.0, 0.2) / pace + (1.0 if step % 100 == 0 else 0.0)
        found.append((now, step))
        if now > 60 + SPAN:
            break
    return found


def simulated(name: str, price: float, seconds: float, often: str, seeds: int = 8) -> ScoutLine:
    group = MachineGroup("r", name, ZONES, 8, True)
    length = VaryingSeconds((seconds,))
    prices = {(zone, True): price for zone in ZONES}
    scene = Scene(name, JOB, 40, 8, (group,), length, 300.0, Timing(), prices=prices, save=1.0)
    [found] = compare([Setting(scene, HABITS, rate(often), spot=True, zones=ZONES)], [300.0], SKY, seeds)
    return ScoutLine(name, None, found)


SKY = Sky(stockouts=Stockouts())


def decided(seed: int) -> tuple[str, str]:
    """The fleet that a scout names, and the one that truly is the cheapest, by a tenth at least."""
    chance = random.Random(seed)
    while True:
        paces = {name: chance.uniform(2, 12) for name in "abcd"}
        prices = {name: chance.uniform(0.3, 3.0) for name in "abcd"}
        often = {name: chance.choice(["5%/h", "20%/h"]) for name in "abcd"}
        true = {n: simulated(n, prices[n], 25 + STEPS / paces[n], often[n]).swept for n in "abcd"}
        costs = sorted((one.cost.mean, name) for name, one in true.items() if one and one.cost)
        if 1.1 * costs[0][0] <= costs[1][0]:
            break
    lines = []
    for name in "abcd":
        seen = speed(watched(chance, paces[name]), began=0.0)
        assert seen is not None
        learned = MeasuredRate(name, seen.rate, seen.warm, seen.span, STEPS, price=prices[name])
        assert learned.seconds is not None
        lines.append(simulated(name, prices[name], learned.seconds, often[name]))
    best = cheapest(lines)
    return best.fleet if best else "", costs[0][1]


def test_scout_names_the_cheapest_in_twenty_of_twenty_worlds() -> None:
    assert [named for named, true in map(decided, range(20)) if named != true] == []
