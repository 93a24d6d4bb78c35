"""A sweep that is to be done by a moment, on emulated machines: the one that closes a run asks for more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gce_world import cloud, weights
from hostler.emulators.gce import Pace

PACE = Pace(operation=0.2, provision=0.2, boot=0.05, soft_off=6, shutdown=8, look=0.3, retry=1)
RUNS, STEPS = 12, 30


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_late_sweep_gets_more_machines_within_its_money(tmp_path: Path) -> None:
    with cloud(tmp_path, scale=1, pace=PACE) as world:
        fleet = {"backend": "gce", "project": world.gce.project, "zones": ["us-central1-a"], "price": 6.0}
        project = {"name": "cifar", "store": "gs://runs/cifar", "checkpoint": {"every": "1s"}}
        world.write("hostler.yaml", json.dumps({**project, "fleets": {"burst": {**fleet, "workers": 4}}}))
        world.env |= {"HOSTLER_CAP_MARGIN": "20", "HOSTLER_REPORT": "240"}  # a busy machine boots slowly
        world.sweep_file(RUNS, steps=STEPS, nap=1.0)  # a run takes ten times as long as is said
        wish = ("--by", "400s", "--under", "3", "--run-time", "3s")
        told = world.run("sweep", "-y", "grid.yaml", "--on", "burst", *wish, timeout=120)
        assert told.code == 0 and "1 worker of burst, up to 2 if it is late" in told.err, told.err
        world.until_gone(520)
        assert world.states() == {"done": RUNS}
        assert world.weights(RUNS) == {n: weights(n, STEPS) for n in range(RUNS)}
        machines = [one for one in world.gce.usage() if one.kind == "machine"]
        assert len(machines) == 2  # one came later, none over the cap
        assert world.gce.bill(lambda usage: 6.0).total <= 3
