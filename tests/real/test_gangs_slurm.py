"""Several nodes of one Slurm allocation train one model: a worker on each, by srun."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gang_world import GANG_BY_HAND, TRAINS, gang, told
from hostler.spec.job import Resources
from slurm_cluster import Cluster, cluster
from slurm_world import SlurmWorld
from worker_world import World

TIMES = {
    "flush": 0.1,
    "flush_max": 0.2,
    "settle": 0.1,
    "grace": 10,
    "poll": 0.05,
    "wait_max": 0.3,
    "idle": 20,
}

SCRIPTS = ("sockets", "torch")  # by what its ranks sum their gradients: twelve processes load torch


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("slurm"), nodes=2, cpus=8) as made:
        yield made


@pytest.fixture
def here(site: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmWorld]:
    for name, value in site.variables.items():
        monkeypatch.setenv(name, value)
    for name, value in TIMES.items():
        monkeypatch.setenv(f"HOSTLER_{name.upper()}", str(value))
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    made = SlurmWorld(site, World(tmp_path / "it's here"))
    yield made
    made.backend.stop(made.fleet(), now=True)
    made.until_gone(made.fleet())


@pytest.mark.timeout(400)
@pytest.mark.parametrize("script", [GANG_BY_HAND, pytest.param(TRAINS, marks=pytest.mark.soak)], ids=SCRIPTS)
def test_four_ranks_of_one_allocation_lose_one_without_changing_weights(
    here: SlurmWorld, script: str
) -> None:
    asked = gang(2, 2, cpus=2)
    found = []
    for name, env in (
        ("whole", {"NAP": "0.02"}),
        ("killed", {"KILL": "[3, 13]", "NAP": "0.15", "EVERY": "0.5"}),
    ):
        job = here.world.submit(script, name=name, resources=asked, env=env)
        fleet = here.fleet(1)
        here.start(fleet, job, resources=asked)
        here.until_gone(fleet, 180)
        assert here.states(job) == ["done"], here.told()
        found.append(dict(told(here.world, job, "weights")))
    assert here.world.state(job).attempts == 2 and here.world.mark("killed").exists()
    assert found[0] == found[1] and sorted(found[0]) == [0, 1, 2, 3]


def test_allocation_has_all_nodes_and_starts_a_worker_on_each(here: SlurmWorld) -> None:
    job = here.world.submit("print(1)")
    launch = replace(here.launch(job), resources=Resources(nodes=2, cpus=3))
    plan = here.backend.plan(here.fleet(1), launch)
    assert {"--nodes=2", "--ntasks-per-node=1", "--cpus-per-task=3"} <= set(plan.commands[0])
    assert "--nodes 2" in plan.script
