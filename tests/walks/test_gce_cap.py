"""Walk 6 on VMs: the money cap is reached, all machines go, nothing is lost, `resume` finishes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gce_world import CloudWorld, cloud, eventually, weights
from hostler.emulators.gce import Pace

PRICE = 60.0  # of a VM, an hour: one a minute
PACE = Pace(operation=0.2, provision=0.4, boot=0.4, soft_off=6, shutdown=8, look=0.3, retry=1)
STEPS = 60


def write(world: CloudWorld, *, budget: float, most: float) -> None:
    """Two fleets that may spend so much each, and a sweep with a budget."""
    one = {"backend": "gce", "project": world.gce.project, "workers": 1, "price": PRICE, "max_cost": most}
    fleets = {"burst": {**one, "zones": ["us-central1-a"]}, "rush": {**one, "zones": ["us-east1-b"]}}
    project = {"name": "cifar", "store": "gs://runs/cifar", "checkpoint": {"every": "1s"}, "fleets": fleets}
    world.write("hostler.yaml", json.dumps(project))
    parameters = {"lr": [0, 1], "steps": STEPS, "nap": 1.0}
    sweep = {"name": "grid", "command": "python train.py", "parameters": parameters}
    world.write("grid.yaml", json.dumps({**sweep, "budget": {"cost": budget}}))


def spent(world: CloudWorld) -> float:
    """As the platform adds it up from its own VM-seconds."""
    return world.gce.bill(lambda usage: PRICE).total


def costing(world: CloudWorld) -> list[str]:
    return [path for path in world.gce.left() if "/instances/" in path or "/disks/" in path]


@pytest.mark.parametrize("resumes", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_two_fleets_and_a_resume_never_exceed_one_sweeps_budget(tmp_path: Path, resumes: bool) -> None:
    with cloud(tmp_path, scale=1, pace=PACE) as world:
        world.env |= {"HOSTLER_CAP_MARGIN": "15", "HOSTLER_GRACE": "3"}
        write(world, budget=2.0, most=1.0)
        assert world.run("sweep", "-y", "--no-start", "grid.yaml", timeout=120).code == 0
        both = [world.start("up", name, "-y") for name in ("burst", "rush")]
        for process in both:
            _, said = process.communicate(timeout=120)
            assert process.returncode == 0, said
        eventually(lambda: len(world.gce.names()) == 2, 30)
        silent = next(name for name in world.gce.names() if "rush" in name)
        world.gce.kill_processes(silent)
        eventually(lambda: not costing(world), 150)
        assert 0 < spent(world) <= 2.0, spent(world)
        assert set(world.states()) <= {"paused", "queued", "running"}
        if not resumes:
            return
        refused = world.run("resume", "-y", "grid", "--on", "burst", timeout=60)
        assert "budget" in refused.err, refused.err
        assert world.run("down", "rush", timeout=120).code == 0
        write(world, budget=6.0, most=4.0)
        world.launched("grid.yaml")
        again = world.run("resume", "-y", "grid", "--on", "burst", timeout=120)
        assert again.code == 0, again.err
        world.until_gone(300)
        assert spent(world) <= 6.0, spent(world)
        assert world.states() == {"done": 2}
        assert world.weights(2) == {n: weights(n, STEPS) for n in range(2)}
