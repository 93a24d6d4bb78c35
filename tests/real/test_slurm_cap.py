"""A cap on a real Slurm: workers save and leave, and what could not begin in time never begins."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hostler.records.run import heartbeats
from slurm_cluster import PROGRAMS, Cluster, cluster
from slurm_world import COUNTS, SlurmWorld
from worker_world import World

pytestmark = [pytest.mark.real, *(pytest.mark.needs(program) for program in PROGRAMS)]
TIMES = {"flush": 0.1, "flush_max": 0.2, "settle": 0.1, "grace": 3, "poll": 0.05, "wait_max": 0.3, "idle": 20}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("slurm"), nodes=1, cpus=2) as made:
        yield made


@pytest.fixture
def here(site: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmWorld]:
    times = {f"HOSTLER_{name.upper()}": str(value) for name, value in TIMES.items()}
    for name, value in {**site.variables, **times, "STEPS": "100000"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    made = SlurmWorld(site, World(tmp_path / "it's here"))
    yield made
    made.backend.stop(made.fleet(), now=True)
    made.until_gone(made.fleet())


def test_deadline_saves_and_pauses_runs_and_queues_no_task_again(here: SlurmWorld) -> None:
    job = here.world.submit(COUNTS)
    now = heartbeats.store_time(here.world.store)
    fleet = here.fleet(workers=1)
    here.start(fleet, job, deadline=now + 20, at=now)
    here.until(lambda: len(here.steps(job)) > 3)
    here.until_gone(fleet, 60)
    state = here.world.state(job, 0)
    assert (state.state, state.paused_by) == ("paused", "cap")
    assert heartbeats.store_time(here.world.store) < now + 20 + 30


def test_a_task_that_begins_after_the_deadline_takes_nothing(here: SlurmWorld) -> None:
    job = here.world.submit(COUNTS)
    now = heartbeats.store_time(here.world.store)
    fleet = here.fleet(workers=1)
    here.start(fleet, job, deadline=now - 1, at=now)
    here.until_gone(fleet, 60)
    assert here.world.state(job, 0).state == "queued"
    assert here.steps(job) == []
