"""`hostler cost --explain`: every dollar of a launch has a purpose; together they are the platform's bill."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gce_world import CloudWorld, cloud, eventually, weights
from hostler.emulators.gce import Pace

PRICE = 60.0  # of a VM, an hour: one a minute
PACE = Pace(operation=0.2, provision=0.2, boot=0.05, soft_off=6, shutdown=8, look=0.3, retry=1)
STEPS = 30


def test_purposes_of_a_launch_add_up_to_its_bill(tmp_path: Path) -> None:
    with cloud(tmp_path, scale=1, pace=PACE) as world:
        fleet = {"backend": "gce", "project": world.gce.project, "zones": ["us-central1-a"], "price": PRICE}
        project = {"name": "cifar", "store": "gs://runs/cifar", "checkpoint": {"every": "6s"}}
        world.write("hostler.yaml", json.dumps({**project, "fleets": {"burst": {**fleet, "workers": 2}}}))
        world.env["HOSTLER_CHECKPOINT_EVERY"] = "6"
        world.sweep_file(3, steps=STEPS, nap=0.5)
        world.launched("grid.yaml")
        eventually(lambda: _least_step(world) >= 8, 120)
        struck = world.gce.names()[0]
        world.gce.preempt(struck, notice=False)
        world.until_gone(240)
        assert world.states() == {"done": 3}
        assert world.weights(3) == {n: weights(n, STEPS) for n in range(3)}
        bill = world.gce.bill(lambda usage: PRICE).total
        found = world.run("cost", "--explain", "--json", timeout=60).json["explained"]["burst/1"]
        assert found["by_platform"] and found["total"] == pytest.approx(bill, rel=0.01), (found, bill)
        parts = ("training", "booting", "saving", "repeated", "idle", "tail")
        assert sum(found[part] for part in parts) == pytest.approx(found["total"], rel=1e-4)
        assert all(found[part] > 0 for part in parts if part != "idle") and found["idle"] >= 0, found
        least = 3 * STEPS * 0.5 * PRICE / 3600  # what the steps themselves take
        assert least <= found["training"] == found["ideal"] < found["total"]
        shown = world.run("cost", "--explain", "burst", timeout=60).out
        assert "repeated work, lost before it was saved" in shown and "ideal" in shown


def _least_step(world: CloudWorld) -> int:
    """The lowest step of the two runs that train; 0 before there are two."""
    rows = [row for row in world.run("status", "grid", "--json").json if row["state"] == "running"]
    return min((row.get("step") or 0 for row in rows), default=0) if len(rows) == 2 else 0
