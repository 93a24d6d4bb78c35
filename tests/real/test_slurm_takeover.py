"""A node of a real Slurm crashes, and long before Slurm notices another task takes its run over.

Slurm gives a node five minutes here before it queues a task again: whatever happens earlier is hostler's
doing. A node has one core, so that each task has a node, and one node is idle. The clock is ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from test_slurm import at

from claim_times import claimed_at, claims, last_beat
from hostler.records import layout
from hostler.records.run.log import END
from hostler.spec.job import Checkpointing, Job
from platform_takeovers import waited
from slurm_cluster import Cluster, cluster
from slurm_world import TRAINS, SlurmWorld
from worker_world import FAST, World

STEPS, HOLD = "60", "20"
BEAT = 0.5
SLACK = 3.0  # seconds that a look, a claim and a busy machine may add
NOTICED = 300  # seconds after which Slurm gives a silent node up


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    folder = tmp_path_factory.mktemp("slurm")
    with cluster(folder, nodes=3, cpus=1, lines=[f"SlurmdTimeout={NOTICED}"]) as made:
        yield made


@pytest.fixture
def here(site: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmWorld]:
    for name, value in site.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    made = at(site, tmp_path, monkeypatch)
    yield made
    made.backend.stop(made.fleet(), now=True)
    for name in (f"n{number}" for number in range(1, site.nodes + 1)):
        if name not in site.daemons:
            site.start_node(name)
    made.until_gone(made.fleet())


class Pair:
    """Two runs on two nodes, each by a task of its own. `lost` is the run whose node is about to crash,
    `kept` the other; both wait at step HOLD until `finish`."""

    lost, kept = 0, 1

    def __init__(self, here: SlurmWorld, root: Path, lease: float, **options: float) -> None:
        world = World(root, timing=replace(FAST, beat=BEAT, lease=lease))
        self.here = SlurmWorld(here.site, world)
        self.job: Job = world.submit(
            TRAINS,
            runs=[{"number": 0}, {"number": 1}],
            env={"STEPS": STEPS, "HOLD": HOLD},
            checkpoint=Checkpointing(every=0.3),
        )
        self.fleet = self.here.fleet(2, **options)
        self.here.start(self.fleet, self.job)
        self.here.until(lambda: all(len(self.here.steps(self.job, run)) > 10 for run in (0, 1)), 90)

    def claims(self, run: int) -> list[dict[str, object]]:
        return [entry for _, entry in claims(self.here.world.store, self.here.world.key(self.job, run))]

    def task(self, run: int) -> str:
        """The task that first claimed a run, as Slurm knows it."""
        return str(self.claims(run)[0]["job"]).split()[-1]

    def node(self, run: int) -> str:
        return next(one.host for one in self.here.backend.list(self.fleet) if one.id == self.task(run))

    def crash(self) -> None:
        """The node of `lost` is gone, and its heart has missed beats that the worker of `kept` has seen."""
        assert self.node(self.lost) != self.node(self.kept)
        self.here.site.kill_node(self.node(self.lost))
        self.here.until(lambda: self.beat(self.kept) - self.beat(self.lost) > 4 * BEAT)

    def beat(self, run: int) -> float:
        return last_beat(self.here.world.store, self.here.world.key(self.job, run))

    def finish(self, *runs: int) -> None:
        for run in runs:
            self.here.world.mark(f"go-{self.job.run_id(run)}").touch()

    def taken_at(self) -> float:
        """When the lost run was claimed again, once it was."""
        self.here.until(lambda: len(self.claims(self.lost)) > 1, 90)
        return claimed_at(self.here.world.store, self.here.world.key(self.job, self.lost), 2)

    def ended_at(self, run: int) -> float:
        """When a run ended, once it has: exactly once."""
        self.here.until(lambda: self.here.states(self.job)[run] == "done", 90)
        world, key = self.here.world, self.here.world.key(self.job, run)
        [head] = [n for n, entry in enumerate(world.entries(self.job, run), 1) if entry["kind"] == END]
        return next(entry.modified for entry in world.store.list(layout.log_entry(key.sweep, key.run, head)))

    def until_left(self, run: int, seconds: float = 60) -> None:
        """Until the task that first had a run is out of the queue."""
        self.here.until(lambda: self.task(run) not in self.here.site.states(), seconds)

    def weights(self, run: int) -> list[str]:
        return [
            line for line in self.here.world.log(self.job, run).splitlines() if line.startswith("weights")
        ]


def undisturbed(folder: Path) -> str:
    """The weights of a training that nobody disturbed."""
    alone = {**os.environ, "STEPS": STEPS, "HOSTLER_CHECKPOINT_DIR": str(folder)}
    done = subprocess.run([sys.executable, "-c", TRAINS], env=alone, capture_output=True, text=True)
    return next(line for line in done.stdout.splitlines() if line.startswith("weights"))


def test_finishing_task_stays_and_ends_a_crashed_nodes_run(here: SlurmWorld, tmp_path: Path) -> None:
    lease = 16.0
    pair = Pair(here, tmp_path / "pair", lease)
    before = waited()
    pair.crash()
    pair.finish(pair.kept, pair.lost)
    own, taken = pair.ended_at(pair.kept), pair.taken_at()
    lost = pair.beat(pair.lost)
    assert own < lost + lease, "the run of the other task took too long: it had nothing to stay for"
    assert lease - BEAT <= taken - lost <= lease + 2 * BEAT + SLACK + (waited() - before)
    assert [claim["session"] for claim in pair.claims(pair.lost)][1] == pair.claims(pair.kept)[0]["session"]
    assert pair.here.site.states()[pair.task(pair.lost)] == "RUNNING", "Slurm has noticed nothing"
    pair.ended_at(pair.lost)
    pair.until_left(pair.kept)
    assert pair.weights(pair.lost) == pair.weights(pair.kept) == [undisturbed(tmp_path)]
    assert [len(pair.claims(run)) for run in (pair.lost, pair.kept)] == [2, 1]


def test_finishing_task_leaves_at_once_where_no_run_is_lost(here: SlurmWorld, tmp_path: Path) -> None:
    """One leaves while the other's heart beats, and that one when nobody holds anything: a lease is longer
    than the test waits, and the time limit far beyond two of them."""
    pair = Pair(here, tmp_path / "pair", lease=600.0, time=7200.0)
    pair.finish(0)
    pair.until_left(0)
    assert pair.here.states(pair.job) == ["done", "running"]
    pair.finish(1)
    pair.until_left(1)
    assert pair.here.states(pair.job) == ["done", "done"]
    assert pair.weights(0) == pair.weights(1) == [undisturbed(tmp_path)]
    assert [len(pair.claims(run)) for run in (0, 1)] == [1, 1]


def test_task_near_its_time_limit_does_not_stay(here: SlurmWorld, tmp_path: Path) -> None:
    """It has less than two leases left: a run that it took over would be cut short."""
    lease = 200.0
    pair = Pair(here, tmp_path / "pair", lease, time=300.0)
    pair.crash()
    pair.finish(pair.kept)
    pair.until_left(pair.kept)
    assert pair.here.states(pair.job)[pair.kept] == "done"
    assert time.time() < pair.beat(pair.lost) + lease
    assert len(pair.claims(pair.lost)) == 1
