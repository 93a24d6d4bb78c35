"""What befalls workers on a real Slurm: time limits, preemption, lost nodes, small sites."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_slurm import at

from hostler.spec.job import Checkpointing, Job
from slurm_cluster import Cluster, cluster
from slurm_world import COUNTS, SlurmWorld

PREEMPTION = ("PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE")
URGENT = "PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=OFF MaxTime=INFINITE State=UP"
LOW = "PartitionName=low Nodes=ALL PriorityTier=1 PreemptMode=REQUEUE GraceTime=120 MaxTime=INFINITE State=UP"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Two small nodes; the controller's clock runs thirty times faster."""
    with cluster(
        tmp_path_factory.mktemp("slurm"),
        nodes=2,
        cpus=2,
        speed=30,
        lines=[*PREEMPTION, "MaxArraySize=3"],
        partitions=[URGENT, LOW],
    ) as made:
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
    made.until_gone(made.fleet())


def training(here: SlurmWorld, steps: int) -> Job:
    """Its first attempt does not get beyond step 6 before something befalls it."""
    given = {"STEPS": str(steps), "PACE": "0.05", "HOLD": "6"}
    return here.world.submit(COUNTS, env=given, checkpoint=Checkpointing(every=0.3))


def whole(here: SlurmWorld, job: Job, steps: int) -> None:
    """It is done, and its curve is that of a training nobody disturbed."""
    assert here.states(job) == ["done"]
    assert here.world.curve(job, "value") == [(step, float(step * 2)) for step in range(steps)]


def test_time_limit_saves_the_run_requeues_it_and_continues_it(here: SlurmWorld) -> None:
    job = training(here, steps=20)
    fleet = here.fleet(1, time=300.0)  # ten seconds of ours
    here.start(fleet, job)
    here.until_gone(fleet, 240)
    whole(here, job, 20)
    assert here.world.state(job).attempts > 1
    reasons = [e["why"] for e in here.world.entries(job) if e["kind"] == "release"]
    assert set(reasons) == {"preempted"} and len(here.steps(job)) == 20


def test_a_site_without_requeue_is_served_by_a_chain(here: SlurmWorld) -> None:
    job = training(here, steps=20)
    fleet = here.fleet(1, time=300.0, chain=4)
    assert len(here.start(fleet, job)) == 4
    here.until_gone(fleet, 240)
    whole(here, job, 20)
    assert here.world.state(job).attempts > 1


def test_it_makes_room_for_a_higher_partition_and_comes_back(here: SlurmWorld, site: Cluster) -> None:
    job = training(here, steps=20)
    fleet = here.fleet(1, partition="low")
    here.start(fleet, job)
    here.until(lambda: len(here.steps(job)) > 3)
    urgent = ["--partition=urgent", "--nodes=2", "--exclusive", "--wrap=sleep 2", "--output=/dev/null"]
    site.run("sbatch", *urgent)
    here.until_gone(fleet, 240)
    whole(here, job, 20)
    assert here.world.state(job).attempts > 1


def test_a_node_that_crashes_loses_no_run(here: SlurmWorld, site: Cluster) -> None:
    job = training(here, steps=20)
    fleet = here.fleet(1)
    here.start(fleet, job)
    here.until(lambda: len(here.steps(job)) > 3)
    [worker] = here.backend.list(fleet)
    site.kill_node(worker.host)
    here.until(lambda: here.world.state(job).attempts > 1, 120)
    site.start_node(worker.host)
    here.until_gone(fleet, 240)
    whole(here, job, 20)


def test_run_left_by_a_killed_slurmd_continues_without_a_twin(here: SlurmWorld, site: Cluster) -> None:
    job = training(here, steps=20)
    fleet = here.fleet(1)
    here.start(fleet, job)
    here.until(lambda: len(here.steps(job)) > 3)
    [worker] = here.backend.list(fleet)
    site.kill_slurmd(worker.host)
    here.until(lambda: "held by others" in here.told(), 60)  # the task that Slurm has started in its place
    here.world.mark("go").touch()
    here.until(lambda: here.states(job) == ["done"], 120)
    whole(here, job, 20)
    assert here.world.state(job).attempts == 1
    site.kill_node(worker.host)
    site.start_node(worker.host)


def test_an_array_larger_than_the_site_allows_is_several(here: SlurmWorld) -> None:
    job = here.world.submit("print(1)", runs=[{"i": i} for i in range(7)])
    fleet = here.fleet(2)
    started = here.start(fleet, job)
    assert [one.count for one in started] == [3, 3, 1]
    here.until_gone(fleet, 240)
    assert here.states(job) == ["done"] * 7


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A site with accounting, where nobody may have more than three jobs in the queue."""
    enforced = ["AccountingStorageEnforce=associations,limits,qos"]
    folder = tmp_path_factory.mktemp("strict")
    with cluster(folder, nodes=1, cpus=4, accounting=True, lines=enforced) as made:
        made.run("sacctmgr", "-i", "modify", "qos", "normal", "set", "MaxSubmitJobsPerUser=3")
        yield made


def test_low_job_limit_gives_fewer_tasks_more_runs_each(
    strict: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in strict.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    here = at(strict, tmp_path, monkeypatch)
    job = here.world.submit("print(1)", runs=[{"i": i} for i in range(9)])
    fleet = here.fleet(2)
    [started] = here.start(fleet, job)
    assert started.count == 3
    here.until_gone(fleet, 90)
    assert here.states(job) == ["done"] * 9
