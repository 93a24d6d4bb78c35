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
        left = world.states()
        early = left.pop("done", 0)  # a busy machine leaves late: its run may have ended meanwhile
        assert left.get("queued", 0) == RUNS - early and set(left) <= {"queued"}
        plan = world.run("plan", "grid.yaml", "--on", cheapest, "--json", timeout=60).json
        best = next(one for one in found["candidates"] if one["fleet"] == cheapest)
        assert plan["seconds_per_run"] == pytest.approx(best["seconds"])
        begun = asked(world, "regionInstanceGroupManagers.insert")
        scouts = {usage.name for usage in world.gce.usage()}
        told = world.run("sweep", "-y", "grid.yaml", "--on", "a,b,c,d", timeout=120)
        assert told.code == 0 and f"on {cheapest}" in told.err, told.err
        assert asked(world, "regionInstanceGroupManagers.insert") > begun
        world.until_gone(240)
        assert world.states() == {"done": RUNS}
        assert world.weights(RUNS) == {n: weights(n, STEPS) for n in range(RUNS)}
        used = {one.type for one in world.gce.usage() if one.kind == "machine" and one.name not in scouts}
        assert used == {named()[cheapest]}
        resumed = [one["attempt"] for one in world.run("status", "grid", "--json").json]
        gone_on = sum(n > 1 for n in resumed)
        assert gone_on + early >= 4  # those that the scout began did not begin anew


@pytest.mark.soak
def test_wish_is_scouted_on_each_machine_and_its_launch_takes_the_cheapest(tmp_path: Path) -> None:
    with cloud(tmp_path, scale=1, pace=PACE) as world:
        world.env |= {"HOSTLER_REPORT": "240"}
        world.write("train.py", SPEEDY)
        wish = {"zones": "us", "gpu": ["T4:1", "L4:1"], "workers": 2}
        fleets = {"cheap": {"backend": "gce", "project": world.gce.project, **wish}}
        project = {"name": "cifar", "store": "gs://runs/cifar", "checkpoint": {"every": "1s"}}
        world.write("hostler.yaml", json.dumps({**project, "fleets": fleets}))
        world.gce.speed("n1-standard-8", 0.3)  # the T4 has the cheaper hour, the L4 the cheaper run
        world.gce.speed("g2-standard-8", 2.0)
        world.sweep_file(4, steps=STEPS, nap=NAP)
        before = world.run("plan", "grid.yaml", "--on", "cheap", "--json", timeout=60).json["price"]["offers"]
        assert before[0]["machine"] == "n1-standard-8 with 1 × T4"
        words = ("scout", "grid.yaml", "--on", "cheap", "--for", "3s", "-y", "--json")
        done = world.run(*words, timeout=400)
        assert done.code == 0, done.err + world.story()
        assert {one["fleet"] for one in done.json["candidates"]} == {"cheap:T4", "cheap:L4"}
        assert done.json["best"] == "cheap:L4" and done.json["next"].endswith("--on cheap")
        assert world.gce.left() == [] and world.states() == {"queued": 4}
        plan = world.run("plan", "grid.yaml", "--on", "cheap", "--json", timeout=60).json
        assert plan["price"]["offers"][0]["machine"] == "g2-standard-8"
        assert "as scouted: L4 " in plan["price"]["measured"]
        best = next(one for one in done.json["candidates"] if one["fleet"] == "cheap:L4")
        assert plan["seconds_per_run"] == pytest.approx(best["seconds"])
        told = world.run("cost", "--explain", "--json", timeout=60).json["explained"]
        assert len(told) == 2 and all(one["by_platform"] for one in told.values()), told
        scouts = {one.name for one in world.gce.usage()}
        told = world.run("sweep", "-y", "grid.yaml", "--on", "cheap", timeout=200)
        assert told.code == 0, told.err
        world.until_gone(240)
        assert world.states() == {"done": 4}
        assert world.weights(4) == {n: weights(n, STEPS) for n in range(4)}
        used = {one.type for one in world.gce.usage() if one.kind == "machine" and one.name not in scouts}
        assert used == {"g2-standard-8"}
