"""`hostler scout` on an emulated platform: machine types of different speeds and prices, a zone sold out."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from gce_world import TRAIN, CloudWorld, asked, cloud, weights
from hostler.emulators.gce import Pace

TYPES = ("e2-standard-4", "n2-standard-4", "n1-standard-4", "n2-standard-8")
ZONES = ("us-central1-a", "us-east1-b", "europe-west4-a")
PACE = Pace(operation=0.2, provision=0.2, boot=0.05, soft_off=6, shutdown=8, look=0.3, retry=1)
RUNS, STEPS, NAP = 6, 60, 0.3
# As long as the emulated machine takes for it.
SPEEDY = TRAIN.replace(
    "time.sleep(given.nap)", "time.sleep(given.nap / float(os.environ.get('EMULATED_SPEED', 1)))"
)


def furnish(world: CloudWorld, speeds: Mapping[str, float], prices: Mapping[str, float]) -> None:
    """A fleet for each machine type, named by its letter, in three regions."""
    assert SPEEDY != TRAIN
    world.write("train.py", SPEEDY)
    common = {"backend": "gce", "project": world.gce.project, "zones": list(ZONES), "workers": 2}
    fleets = {name: {**common, "machine": one, "price": prices[one]} for name, one in named().items()}
    project = {"name": "cifar", "store": "gs://runs/cifar", "checkpoint": {"every": "1s"}, "fleets": fleets}
    world.write("hostler.yaml", json.dumps(project))
    for one, speed in speeds.items():
        world.gce.speed(one, speed)
    world.sweep_file(RUNS, steps=STEPS, nap=NAP)


def named() -> dict[str, str]:
    return dict(zip("abcd", TYPES, strict=True))


def drawn(seed: int) -> tuple[dict[str, float], dict[str, float], str]:
    """Speeds, prices, and the fleet that is cheaper than all others by a tenth at least."""
    chance = random.Random(seed)
    while True:
        speeds = {one: chance.uniform(0.5, 2.0) for one in TYPES}
        prices = {one: round(chance.uniform(1.0, 4.0), 2) for one in TYPES}
        costs = sorted((prices[one] / speeds[one], name) for name, one in named().items())
        if costs[0][0] * 1.1 <= costs[1][0]:
            return speeds, prices, costs[0][1]


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in range(2, 21))])
def test_scout_names_the_cheapest_and_loses_no_step(tmp_path: Path, seed: int) -> None:
    speeds, prices, cheapest = drawn(seed)
    with cloud(tmp_path, scale=1, pace=PACE) as world:
        world.env |= {"HOSTLER_REPORT": "240"}  # four machines boot at once
        furnish(world, speeds, prices)
        world.gce.stockout("us-central1-a", machine=TYPES[seed % 4])
        done = world.run(
            "scout", "grid.yaml", "--on", "a,b,c", "--on", "d", "--for", "3s", "-y", "--json", timeout=400
        )
        assert done.code == 0, done.err + world.story()
        found = done.json
        assert found["best"] == cheapest, (found, speeds, prices)
        assert world.gce.left() == []  # no machine is left when it says so
        for one in found["candidates"]:
            kind = named()[one["fleet"]]
            assert one["machine"] == kind and one["price"] == prices[kind]
            assert one["rate"] == pytest.approx(speeds[kind] / NAP, rel=0.25), one
            assert one["swept"]["cost"]["mean"] > 0 and one["per_run"] > 0
        assert world.states() == {"queued": RUNS}
        plan = world.run("plan", "grid.yaml", "--on", cheapest, "--json", timeout=60).json
        best = next(one for one in found["candidates"] if one["fleet"] == cheapest)
        assert plan["seconds_per_run"] == pytest.approx(best["seconds"])
        begun = asked(world, "regionInstanceGroupManagers.insert")
        told = world.run("sweep", "-y", "grid.yaml", "--on", "a,b,c,d", timeout=120)
        assert told.code == 0 and f"on {cheapest}" in told.err, told.err
        assert asked(world, "regionInstanceGroupManagers.insert") > begun
        world.until_gone(240)
        assert world.states() == {"done": RUNS}
        assert world.weights(RUNS) == {n: weights(n, STEPS) for n in range(RUNS)}
        resumed = [one["attempt"] for one in world.run("status", "grid", "--json").json]
        assert sum(n > 1 for n in resumed) >= 4  # those that the scout began went on, and did not begin anew
