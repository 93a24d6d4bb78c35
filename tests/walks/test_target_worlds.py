"""`hostler sweep --by` in random worlds of an emulated platform, against the best choice in hindsight.

Three regions, four machine types that differ in speed and price, one of them sold out in a zone, and
machines that are taken away. Each place of a launch has a fate: so many seconds until its machine is lost,
then so many for the next one there. The emulator lets it come true, and the simulations that look for the
best choice in hindsight have the same.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from math import exp
from pathlib import Path
from statistics import mean

import pytest

from gce_world import TRAIN, CloudWorld, cloud, eventually, weights
from hostler.backends.capacity import MachineGroup
from hostler.emulators.gce import Pace, Usage
from hostler.settings import Timing
from hostler.simulate.scene import Scene
from hostler.simulate.stock import Outage
from hostler.simulate.times import VaryingSeconds
from hostler.simulate.trace import MachineLoss
from hostler.simulate.weather import Habits, habits_of
from hostler.simulate.world import World
from hostler.spec.job import Job

TYPES = {"a": "e2-standard-4", "b": "n2-standard-4", "c": "n1-standard-4", "d": "n2-standard-8"}
ZONES = ["us-central1-a", "us-east1-b", "europe-west4-a"]
PACE = Pace(operation=0.2, provision=0.2, boot=0.05, soft_off=6, shutdown=8, look=0.3, retry=1)
TIMES = {
    "HOSTLER_LEASE": "10",
    "HOSTLER_REPORT": "240",
    "HOSTLER_MACHINES": "120",
    "HOSTLER_CAP_MARGIN": "20",
}
TIMING = Timing(beat=0.5, lease=10, idle=10, wait_max=0.5, machines=120, report=240, stockout=2)
NAP, MOST = 0.4, 3
EVERY = 1.0  # seconds between two checkpoints
DEARER = 1.1  # times the best in hindsight, on average: one machine more, or its luck, moves a bill as much
GAP = VaryingSeconds((), 0.2, 0.8)  # between two runs of a worker
JOB = Job("grid", ("python", "train.py"))
SPEEDY = TRAIN.replace(
    "time.sleep(given.nap)", "time.sleep(given.nap / float(os.environ.get('EMULATED_SPEED', 1)))"
)


@dataclass(frozen=True)
class Drawn:
    """A world: speeds and prices of machine types, the seconds that there are, the fates of machines."""

    seed: int
    speeds: dict[str, float]
    prices: dict[str, float]
    seconds: float
    runs: int
    steps: int
    life: float  # seconds of a machine, on average

    def fate(self, place: int, turn: int) -> float:
        """Seconds until the machine in this place is taken away, for the first, second … that is there."""
        return random.Random(f"{self.seed} {place} {turn}").expovariate(1 / self.life)


class Storm(threading.Thread):
    """Takes away the machines of a launch as their fate has it, without a word."""

    def __init__(self, world: CloudWorld, found: Drawn) -> None:
        super().__init__(daemon=True)
        self._gce, self._found, self._over = world.gce, found, threading.Event()
        self._old = {usage.name for usage in world.gce.usage()}
        self._ends: dict[tuple[str, float], float] = {}
        self._turns: dict[str, int] = {}

    def run(self) -> None:
        while not self._over.wait(0.05):
            for usage in self._gce.usage():
                if usage.kind == "machine" and usage.name not in self._old:
                    self._strike(usage.name, usage.began)

    def _strike(self, name: str, began: float) -> None:
        if (name, began) not in self._ends:
            turn = self._turns[name] = self._turns.get(name, -1) + 1
            place = list(self._turns).index(name)
            self._ends[name, began] = began + self._found.fate(place, turn)
        if self._gce.now() >= self._ends[name, began]:
            self._ends[name, began] = float("inf")
            try:
                self._gce.preempt(name, notice=False)
            except LookupError:
                pass  # it left by itself meanwhile

    def stop(self) -> None:
        self._over.set()
        self.join()


class Fated:
    """The same for simulated machines."""

    windows: dict[str, list[Outage]] = {}

    def __init__(self, habits: Habits, found: Drawn, chance: random.Random) -> None:
        self._habits, self._found, self._chance = habits, found, chance
        self._turns: defaultdict[int, int] = defaultdict(int)

    def loss(self, vm: int, born: float, *, spot: bool) -> MachineLoss | None:
        turn = self._turns[vm]
        self._turns[vm] += 1
        at = born + self._found.fate(vm, turn)
        return MachineLoss(vm, at, at, notice=False)

    def comes(self, vm: int) -> float:
        return self._habits.comes.draw(self._chance)

    def boots(self, vm: int) -> float:
        return self._habits.boots.draw(self._chance)

    def parts(self) -> float:
        return self._habits.parts.draw(self._chance)


def drawn(seed: int, runs: int, steps: int, life: float) -> Drawn:
    chance = random.Random(seed)
    speeds = {name: chance.uniform(0.5, 2.0) for name in TYPES}
    prices = {name: round(chance.uniform(1.0, 4.0), 2) for name in TYPES}
    quickest = runs * steps * NAP / max(speeds.values()) / MOST
    seconds = round(60 + chance.uniform(1.5, 3.5) * quickest)
    return Drawn(seed, speeds, prices, seconds, runs, steps, life)


def furnish(world: CloudWorld, found: Drawn) -> None:
    assert SPEEDY != TRAIN
    world.env |= TIMES
    world.write("train.py", SPEEDY)
    common = {"backend": "gce", "project": world.gce.project, "zones": ZONES, "workers": MOST}
    fleets = {
        name: {**common, "machine": machine, "price": found.prices[name]} for name, machine in TYPES.items()
    }
    project = {"name": "cifar", "store": "gs://runs/cifar", "checkpoint": {"every": f"{EVERY:g}s"}}
    world.write("hostler.yaml", json.dumps({**project, "fleets": fleets}))
    for name, machine in TYPES.items():
        world.gce.speed(machine, found.speeds[name])
    world.gce.stockout(ZONES[0], machine=list(TYPES.values())[found.seed % len(TYPES)])
    world.sweep_file(found.runs, steps=found.steps, nap=NAP)


@dataclass(frozen=True)
class Played:
    """Result of a world: whether its sweep was in time, what it cost, and what the best choice would have."""

    met: bool
    bill: float
    best: float  # infinite: nothing would have been in time
    cheapest: bool  # the scout named the fleet whose steps are the cheapest, or another within a tenth
    explained: float  # what `hostler cost --explain` adds up to, as a part of the platform's bill
    words: str


def play(folder: Path, found: Drawn) -> Played:
    with cloud(folder, scale=1, pace=PACE) as world:
        furnish(world, found)
        named, left = scouted(world, found.steps)
        fleets = {machine: name for name, machine in TYPES.items()}
        before = {usage.name for usage in world.gce.usage()}
        seconds, chosen, met = swept(world, found)
        done = world.states().get("done", 0) == found.runs
        assert done or not met
        if done:
            trained = {n: weights(n, found.steps) for n in range(found.runs)}
            assert world.weights(found.runs) == trained
        told = world.run("cost", "--explain", "--json", timeout=200).json["explained"]
        used = [usage for usage in world.gce.usage() if usage.kind == "machine"]
        own = [usage for usage in used if usage.name not in before]
        assert f"of {fleets[own[0].type]}" in chosen and len({usage.type for usage in own}) == 1
        every = hindsight(world, found, left, seconds)
        lost = len(world.gce.trace().losses)

    def bill(usages: list[Usage]) -> float:
        return sum(found.prices[fleets[usage.type]] * usage.seconds / 3600 for usage in usages)

    best = min(every, key=lambda name: every[name], default="none")
    cost = every.get(best, float("inf"))
    steps = {name: found.prices[name] / found.speeds[name] for name in TYPES}
    explained = sum(one["total"] for one in told.values()) / bill(used)
    words = f"world {found.seed}: {'in time' if met else 'LATE'}, {bill(own) / cost:.3f} of the best "
    words += f"in hindsight ({best}); {lost} machines lost, {sum(left)} steps left; "
    words += f"explained {explained:.4f} of the bill; scout: {named}; {chosen}"
    return Played(met, bill(own), cost, steps[named] <= 1.1 * min(steps.values()), explained, words)


def scouted(world: CloudWorld, steps: int) -> tuple[str, list[int]]:
    """The fleet that a scout names, and the steps that each run has left then."""
    words = ("scout", "grid.yaml", "--on", ",".join(TYPES), "--for", "5s", "-y", "--json")
    done = world.run(*words, timeout=400)
    assert done.code == 0, done.err + world.story()
    rows = world.run("status", "grid", "--json").json
    ahead = [round(1 / row["metrics"]["loss"]) if row["metrics"] else 0 for row in rows]
    return str(done.json["best"]), [steps - step for step in ahead]


def swept(world: CloudWorld, found: Drawn) -> tuple[float, str, bool]:
    """The seconds that were given, the choice that was shown, and whether all was done by then. Where the
    answer is that it cannot be, a person gives more time."""
    rate, seconds = f"{100 * (1 - exp(-10 / found.life)):.4f}%/10s", found.seconds
    storm = Storm(world, found)
    storm.start()
    try:
        while True:
            due = time.monotonic() + seconds
            words = ("--on", ",".join(TYPES), "--by", f"{seconds:g}s", "--preempt", rate)
            told = world.run("sweep", "-y", "grid.yaml", *words, timeout=300)
            if "cannot be done by" not in told.err:
                break
            seconds = round(1.25 * seconds)
        assert told.code == 0, told.err
        met = in_time(world, found.runs, due)
        until_over(world)
    finally:
        storm.stop()
    return seconds, next(line for line in told.err.splitlines() if "done by" in line).strip(), met


def in_time(world: CloudWorld, runs: int, due: float) -> bool:
    try:
        eventually(lambda: world.states() == {"done": runs}, due - time.monotonic())
    except AssertionError:
        return False
    return True


def until_over(world: CloudWorld) -> None:
    """Until nothing is left. If the last machine was taken away while it removed its own group, nothing that
    costs is there, and a person's next command removes the rest."""
    end = time.monotonic() + 400
    while world.gce.machines() or any(group.target for group in world.gce._world.groups.values()):
        assert time.monotonic() < end, world.story()
        time.sleep(0.2)
    try:
        world.until_gone(10)
    except AssertionError:
        for name in TYPES:
            assert world.run("down", name, timeout=120).code == 0
        world.until_gone(10)


def hindsight(world: CloudWorld, found: Drawn, left: list[int], seconds: float) -> dict[str, float]:
    """Cost of each size of each fleet that is in time, simulated with what nobody knew: speeds and fates."""
    habits = habits_of(world.gce.trace(), Habits())
    costs: dict[str, float] = {}
    for name in TYPES:
        lengths = VaryingSeconds(tuple(steps * NAP / found.speeds[name] for steps in left))
        for workers in range(1, MOST + 1):
            groups = (MachineGroup("r", name, ("z",), workers),)
            prices = {("z", True): found.prices[name]}
            scene = Scene(
                name, JOB, found.runs, workers, groups, lengths, EVERY, TIMING, gap=GAP, prices=prices
            )
            outcomes = [
                World(scene, Fated(habits, found, random.Random(2 * n)), 2 * n + 1).run() for n in range(10)
            ]
            if mean(one.seconds for one in outcomes) <= seconds:
                costs[f"{workers} of {name}"] = mean(one.cost for one in outcomes)
    return costs


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_targets_are_met_in_nineteen_of_twenty_emulated_worlds(tmp_path: Path) -> None:
    """The scout before it names the cheapest in each, and the bill is explained. The worlds are small: a boot
    is a tenth of the work, and one machine more or less, or its luck, moves the bill as much. That the choice
    is within a tenth of the best is held where they are larger, below."""
    played = list[Played]()
    for seed in range(20):
        played.append(play(tmp_path / str(seed), drawn(seed, runs=8, steps=60, life=150)))
        print(played[-1].words, flush=True)
    met = [one for one in played if one.met]
    assert len(met) >= 19
    assert mean(one.bill / one.best for one in met) <= DEARER
    assert all(one.cheapest for one in played)
    assert all(abs(one.explained - 1) <= 0.01 for one in played)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_choice_in_larger_worlds_is_within_a_tenth_of_the_best(tmp_path: Path) -> None:
    """Six times the work: a boot is a fiftieth of it."""
    played = list[Played]()
    for seed in range(5):
        played.append(play(tmp_path / str(seed), drawn(seed, runs=24, steps=120, life=600)))
        print(played[-1].words, flush=True)
    assert all(one.met for one in played)
    assert all(one.bill <= 1.1 * one.best for one in played)
    assert all(one.cheapest and abs(one.explained - 1) <= 0.01 for one in played)
