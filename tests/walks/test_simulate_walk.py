"""`hostler simulate` beside an emulated launch of the same sweep: what it says is what comes.

The emulator runs at the pace of the workers (scale 1), so that its clock, the bill and the runs agree.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from math import exp
from pathlib import Path
from statistics import mean
from typing import Any

import pytest

from gce_world import CloudWorld, cloud
from hostler.emulators.gce import Pace

PACE = Pace(
    operation=0.2, provision=0.5, boot=0.5, notice=0.5, soft_off=6, shutdown=6, look=0.3, retry=1, late=0
)
# A machine under load is slow: that is no loss, and nobody gives up on it.
PATIENT = {"HOSTLER_LEASE": "10", "HOSTLER_REPORT": "240", "HOSTLER_MACHINES": "120"}
PRICE = 36.0  # a second of a machine costs a hundredth
WORKERS, RUNS = 2, 6
LIFE = 120.0  # seconds of a machine, on average, in the long dose
ZONES = ["us-central1-a", "us-central1-b"]


@dataclass(frozen=True)
class Real:
    """An emulated launch: what it took, and what the simulation is fed."""

    world: CloudWorld
    seconds: float
    cost: float
    trace: Path


class Storm(threading.Thread):
    """Takes machines away: at a rate, each for itself; or at given seconds after the first worker has begun,
    whichever works longest."""

    def __init__(
        self,
        world: CloudWorld,
        life: float = 0.0,
        seed: int = 0,
        strikes: tuple[tuple[float, bool], ...] = (),
    ) -> None:
        super().__init__(daemon=True)
        self._world, self._life, self._strikes = world, life, list(strikes)
        self._chance, self._over = random.Random(seed), threading.Event()
        self._ends: dict[tuple[str, float], float] = {}

    def run(self) -> None:
        while not self._over.wait(0.05):
            there = [one for one in self._world.gce.usage() if one.kind == "machine"]
            running = set(self._world.gce.names())
            for one in there if self._life else ():
                self._by_chance(one.name, one.began, self._world.gce.now())
            works = [s.at + (s.boots or 0.0) for s in self._world.gce.trace().starts if s.boots is not None]
            if self._strikes and works and running and self._passed() >= min(works) + self._strikes[0][0]:
                oldest = min((one for one in there if one.name in running), key=lambda one: one.began)
                self._take(oldest.name, notice=self._strikes.pop(0)[1])

    def _passed(self) -> float:
        """Seconds since the launch."""
        used, first = self._world.gce.usage(), self._world.gce.trace().starts[0].at
        return self._world.gce.now() - min(one.began for one in used if one.kind == "machine") + first

    def _by_chance(self, name: str, began: float, now: float) -> None:
        if (name, began) not in self._ends:
            self._ends[name, began] = began + self._chance.expovariate(1 / self._life)
        if now >= self._ends[name, began]:
            self._ends[name, began] = float("inf")
            self._take(name, notice=False)

    def _take(self, name: str, *, notice: bool) -> None:
        try:
            self._world.gce.preempt(name, notice=notice)
        except LookupError:
            pass  # it left by itself meanwhile

    def stop(self) -> None:
        self._over.set()
        self.join()


def launch(world: CloudWorld, storm: Storm, out: str = "") -> Real:
    """A sweep on emulated VMs in this weather; `out`: a zone that has none left when it begins."""
    world.env = {**world.env, **PATIENT}
    world.project(workers=WORKERS, zones=ZONES, more=f"price: {PRICE}")
    world.sweep_file(RUNS, nap=0.7, steps=14)
    if out:
        world.gce.stockout(out)
    storm.start()
    try:
        world.launched("grid.yaml", timeout=400)
        world.until_gone(400)
    finally:
        storm.stop()
    assert world.states() == {"done": RUNS}
    path = world.folder / "trace.jsonl"
    world.gce.write_trace(str(path))
    found, used = world.gce.trace(), [one for one in world.gce.usage() if one.kind == "machine"]
    begins = min(one.began for one in used) - found.starts[0].at
    seconds = max(one.began + one.seconds for one in used) - begins
    return Real(world, seconds, world.gce.bill(lambda _: PRICE).total, path)


def simulated(real: Real, *words: str) -> dict[str, Any]:
    done = real.world.run(
        "simulate",
        "grid.yaml",
        "--on",
        "burst",
        "--checkpoint",
        "1s",
        "--save",
        "0s",
        "--json",
        *words,
        timeout=240,
    )
    assert done.code == 0, done.err
    return done.json["results"][0]


pytestmark = pytest.mark.timeout(1200)


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    with cloud(tmp_path_factory.mktemp("simulate"), scale=1, pace=PACE) as world:
        yield launch(world, Storm(world, strikes=((4.0, False), (18.0, True))), out=ZONES[0])


def test_trace_of_an_emulated_launch_is_simulated_as_it_was(real: Real) -> None:
    """One launch on a busy machine may be a little off; twenty are held to a tenth, below."""
    found = simulated(real, "--trace", str(real.trace), "--seeds", "20")
    assert len(real.world.gce.trace().losses) == 2 and found["losses"] >= 1
    assert found["gone"]["mean"] == pytest.approx(real.seconds, rel=0.25)
    assert found["cost"]["mean"] == pytest.approx(real.cost, rel=0.25)


def test_emulated_launch_lies_in_the_interval_from_rates_alone(real: Real) -> None:
    used = sum(one.seconds for one in real.world.gce.usage() if one.kind == "machine")
    share = 100 * (1 - exp(-len(real.world.gce.trace().losses) * 10 / used))  # of machines, in ten seconds
    found = simulated(real, "--whole", "--preempt", f"{share:.4f}%/10s", "--notice", "0s", "--seeds", "200")
    for name, value in (("gone", real.seconds), ("cost", real.cost)):
        assert found[name]["low"] <= value <= found[name]["high"], (name, value, found[name])


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_twenty_launches_in_twenty_weathers_are_simulated(tmp_path: Path) -> None:
    """Within a tenth from their traces, on average; in the stated interval from their rate, nine of ten."""
    ratios: list[tuple[float, float]] = []
    inside = 0
    for seed in range(20):
        with cloud(tmp_path / str(seed), scale=1, pace=PACE) as world:
            one = launch(world, Storm(world, life=LIFE, seed=seed), out=ZONES[seed % 2])
            found = simulated(one, "--trace", str(one.trace), "--seeds", "20")
            ratios.append((found["gone"]["mean"] / one.seconds, found["cost"]["mean"] / one.cost))
            rate = f"{100 * (1 - exp(-10 / LIFE)):.4f}%/10s"
            found = simulated(one, "--whole", "--preempt", rate, "--notice", "0s", "--seeds", "200")
            inside += found["gone"]["low"] <= one.seconds <= found["gone"]["high"]
            inside += found["cost"]["low"] <= one.cost <= found["cost"]["high"]
            print(seed, one.seconds, one.cost, ratios[-1], inside)
    assert mean(time for time, _ in ratios) == pytest.approx(1, abs=0.1)
    assert mean(cost for _, cost in ratios) == pytest.approx(1, abs=0.1)
    assert inside >= 32  # of forty; thirty-six are expected


FAST = 20.0  # emulated seconds in a real one: a run of two minutes is one of forty
STEPS = 120


class Bare(threading.Thread):
    """The same training again and again without hostler, while a launch works on this machine: the ideal."""

    def __init__(self, world: CloudWorld) -> None:
        super().__init__(daemon=True)
        self._script, self._places = world.folder / "train.py", world.folder.parent / "bare"
        self._over = threading.Event()
        self.took: list[float] = []

    def run(self) -> None:
        while not self._over.is_set():
            place = self._places / str(len(self.took))
            place.mkdir(parents=True)
            folders = dict.fromkeys(("HOSTLER_CHECKPOINT_DIR", "HOSTLER_OUTPUT_DIR"), str(place))
            words = [sys.executable, str(self._script), "--nap", "1.0", "--steps", str(STEPS)]
            begun = time.monotonic()
            subprocess.run(words, env={**os.environ, **folders}, stdout=subprocess.DEVNULL, check=True)
            self.took.append(time.monotonic() - begun)

    def seconds(self) -> float:
        """Of one training, on average."""
        self._over.set()
        self.join()
        return mean(self.took)


@pytest.mark.soak
@pytest.mark.timeout(2400)
@pytest.mark.parametrize(
    ("strikes", "over"),
    [((), 1.04), (((150.0, False),), 1.06)],
    ids=["5 %/h: none in five hours", "20 %/h: one in five hours"],
)
def test_runs_of_forty_minutes_cost_what_the_simulator_says(
    tmp_path: Path, strikes: tuple[tuple[float, bool], ...], over: float
) -> None:
    """Within 3 %, and so little more than the training without hostler beside it. A machine under load boots
    slowly: so many emulated seconds are the test's own, and not held against it."""
    with cloud(tmp_path, scale=FAST) as world:
        world.env = {**world.env, **PATIENT, "HOSTLER_CHECKPOINT_EVERY": "15"}
        world.project(workers=WORKERS, zones=ZONES, more=f"price: {PRICE}")
        world.sweep_file(8, nap=1.0, steps=STEPS)
        storm, bare = Storm(world, strikes=tuple((FAST * at, notice) for at, notice in strikes)), Bare(world)
        storm.start()
        bare.start()
        try:
            world.launched("grid.yaml", timeout=400)
            world.until_gone(1200)
        finally:
            storm.stop()
            alone = bare.seconds()
        assert world.states() == {"done": 8}
        world.gce.write_trace(str(tmp_path / "trace.jsonl"))
        bill = world.gce.bill(lambda _: PRICE).total
        one = Real(world, 0.0, bill, tmp_path / "trace.jsonl")
        every = ("--checkpoint", f"{15 * FAST:g}s", "--save", "0s")
        found = simulated(one, "--trace", str(one.trace), "--whole", "--seeds", "20", *every)
        cost, ideal = found["cost"]["mean"], 8 * alone * FAST * PRICE / 3600
        booted = sum(start.boots or 0.0 for start in world.gce.trace().starts) * PRICE / 3600
        print(
            f"bill {bill / ideal:.4f}, simulated {cost / ideal:.4f} of the ideal, boots {booted / ideal:.4f}"
        )
        print(f"a training alone took {alone:.1f} s, {alone / STEPS:.4f} of its naps")
        assert len(world.gce.trace().losses) == len(strikes)
        assert abs(bill / cost - 1) <= 0.03
        assert cost - booted <= over * ideal and bill - booted <= 1.03 * over * ideal
