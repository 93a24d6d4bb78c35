"""What befalls workers on a real Slurm: time limits, preemption, lost nodes, small sites."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from test_slurm import at

from frozen import frozen, processes
from hostler.backends.base import Launch
from hostler.backends.slurm.fates import Fates
from hostler.records.run.history import Try, tries
from hostler.records.run.log import RunKey, RunLog
from hostler.spec.job import Checkpointing, Job
from hostler.spec.project import Fleet
from platform_takeovers import AT_ONCE, FAR, task_queued_again
from slurm_cluster import Cluster, cluster
from slurm_world import COUNTS, TRAINS, SlurmWorld
from worker_world import FAST, World

PREEMPTION = ("PreemptType=preempt/partition_prio", "PreemptMode=REQUEUE")
URGENT = "PartitionName=urgent Nodes=ALL PriorityTier=10 PreemptMode=OFF MaxTime=INFINITE State=UP"
LIMIT = 900.0
TAKES = """
import time
taken = []
for _ in range(20):
    taken.append(bytearray(50_000_000))
    time.sleep(0.2)
time.sleep(60)
"""  # a gigabyte
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


def test_weights_are_exact_after_the_time_limit(here: SlurmWorld, tmp_path: Path) -> None:
    given = {"STEPS": "60", "PACE": "0.05", "HOLD": "30"}
    job = here.world.submit(TRAINS, env=given, checkpoint=Checkpointing(every=0.3))
    fleet = here.fleet(1, time=300.0)  # ten seconds of ours
    here.start(fleet, job)
    here.until(lambda: here.world.state(job).attempts > 1, 120)
    here.world.mark(f"go-{job.run_id(0)}").touch()
    here.until_gone(fleet, 240)
    assert here.states(job) == ["done"]
    alone = {**os.environ, "STEPS": "60", "HOSTLER_CHECKPOINT_DIR": str(tmp_path)}
    undisturbed = subprocess.run([sys.executable, "-c", TRAINS], env=alone, capture_output=True, text=True)
    [wanted] = [line for line in undisturbed.stdout.splitlines() if line.startswith("weights")]
    assert [line for line in here.world.log(job).splitlines() if line.startswith("weights")] == [wanted]


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


def test_task_queued_again_takes_its_run_at_once(here: SlurmWorld, tmp_path: Path) -> None:
    """The lease of the worker that was lost with its node is far from over."""
    world = World(tmp_path / "far", timing=replace(FAST, lease=float(FAR)))
    assert task_queued_again(SlurmWorld(here.site, world)).within(AT_ONCE)


def first_try(here: SlurmWorld, job: Job) -> Try:
    return tries(RunLog(here.world.store, RunKey(job.name, job.run_id(0))).read_on().entries)[0]


def taken_over(here: SlurmWorld, fleet: Fleet, job: Job) -> str:
    """How the first attempt ended, as whoever takes the run over has learned it."""
    here.until_gone(fleet, 120)
    here.start(fleet, job)
    here.until(lambda: here.world.state(job).attempts > 1, 120)
    return first_try(here, job).words


def test_lost_run_says_that_its_node_failed(here: SlurmWorld, site: Cluster) -> None:
    """Without accounting and without requeue: the controller is asked by whoever takes the run over."""
    job = training(here, steps=20)
    fleet = here.fleet(1, requeue=False)
    here.start(fleet, job)
    here.until(lambda: len(here.steps(job)) > 3)
    [worker] = here.backend.list(fleet)
    site.kill_node(worker.host)
    assert taken_over(here, fleet, job) == "node-fail"
    site.start_node(worker.host)
    here.until_gone(fleet, 240)
    whole(here, job, 20)


def cancel(site: Cluster, task: str) -> None:
    site.run("scancel", task)


def preempt(site: Cluster, task: str) -> None:
    urgent = ["--partition=urgent", "--nodes=2", "--exclusive", "--wrap=sleep 1", "--output=/dev/null"]
    site.run("sbatch", *urgent)


def let_time_pass(site: Cluster, task: str) -> None:
    """Until the time limit: LIMIT is half a minute of ours."""


ENDS = {cancel: "cancelled", preempt: "preempted", let_time_pass: "timeout"}


def each_end(*now: object) -> pytest.MarkDecorator:
    """These now, and the others in the long dose."""
    cells = [pytest.param(end, ENDS[end], marks=[] if end in now else pytest.mark.soak) for end in ENDS]
    return pytest.mark.parametrize(("end", "words"), cells)


@each_end(preempt, let_time_pass)
def test_lost_run_says_how_its_frozen_task_was_ended(
    here: SlurmWorld, site: Cluster, end: Callable[[Cluster, str], None], words: str
) -> None:
    """A worker that takes no notice of any signal, and is killed when Slurm has waited."""
    job = training(here, steps=20)
    limit = {"time": LIMIT} if end is let_time_pass else {}
    fleet = here.fleet(1, requeue=False, partition="low", **limit)
    here.start(fleet, job)
    here.until(lambda: len(here.steps(job)) > 3)
    [worker] = here.backend.list(fleet)
    with frozen(processes("hostler.worker", here.world.store.url)):
        end(site, worker.id)
        here.until_gone(fleet, 120)
    assert taken_over(here, fleet, job) == words
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


def test_task_that_cannot_use_its_store_ends_and_says_why(
    here: SlurmWorld, tmp_path: Path, seaweed_store_url: str
) -> None:
    fleet, logs = here.fleet(1), tmp_path / "logs"
    launch = Launch("s3://nobody-made-it/p", python=sys.executable, runs=1, logs=str(logs))
    here.backend.start(here.backend.plan(fleet, launch))
    here.until_gone(fleet, 90)
    [said] = [path.read_text() for path in logs.glob("*.log")]
    assert "the bucket does not exist" in said and "attempt" not in said, said


def test_an_array_larger_than_the_site_allows_is_several(here: SlurmWorld) -> None:
    job = here.world.submit("print(1)", runs=[{"i": i} for i in range(7)])
    fleet = here.fleet(2)
    started = here.start(fleet, job)
    assert [one.count for one in started] == [3, 3, 1]
    here.until_gone(fleet, 240)
    assert here.states(job) == ["done"] * 7


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A site with accounting, where nobody may have more than three jobs in the queue, or more memory than
    the job asked for: Slurm measures it, without cgroups. Its clock is ours: `sacct` omits the future."""
    enforced = ["AccountingStorageEnforce=associations,limits,qos", "DefMemPerCPU=400"]
    enforced += ["JobAcctGatherParams=OverMemoryKill", "JobAcctGatherFrequency=task=1"]
    folder = tmp_path_factory.mktemp("strict")
    lines, partitions = [*enforced, *PREEMPTION], [URGENT, LOW.replace("GraceTime=120", "GraceTime=2")]
    with cluster(folder, nodes=2, cpus=4, accounting=True, lines=lines, partitions=partitions) as made:
        made.run("sacctmgr", "-i", "modify", "qos", "normal", "set", "MaxSubmitJobsPerUser=3")
        yield made


@pytest.fixture
def strictly(strict: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmWorld]:
    for name, value in strict.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    made = at(strict, tmp_path, monkeypatch)
    yield made
    made.backend.stop(made.fleet(), now=True)
    made.until_gone(made.fleet())


def test_low_job_limit_gives_fewer_tasks_more_runs_each(strictly: SlurmWorld) -> None:
    job = strictly.world.submit("print(1)", runs=[{"i": i} for i in range(9)])
    fleet = strictly.fleet(2)
    [started] = strictly.start(fleet, job)
    assert started.count == 3
    strictly.until_gone(fleet, 90)
    assert strictly.states(job) == ["done"] * 9


def test_run_that_slurm_killed_for_its_memory_ends_as_memory(strictly: SlurmWorld) -> None:
    """Slurm calls it FAILED 0:9: what the batch step took tells it from other kills."""
    job = strictly.world.submit(TAKES, retries=2)
    fleet = strictly.fleet(1)
    strictly.start(fleet, job)
    strictly.until_gone(fleet, 120)
    assert "exceeded memory limit" in strictly.told()
    strictly.start(fleet, job)
    strictly.until(lambda: first_try(strictly, job).outcome != "running", 120)
    assert first_try(strictly, job).words == "memory"


def by_sacct(site: Cluster) -> Callable[[Sequence[str]], str | None]:
    """Accounting alone: the controller, which would tell the same, is not asked."""
    return lambda words: site.run(*words) if words[0] == "sacct" else None


@pytest.mark.timeout(600)
@each_end(cancel)
def test_accounting_says_how_a_frozen_task_was_ended(
    strictly: SlurmWorld, end: Callable[[Cluster, str], None], words: str
) -> None:
    job = training(strictly, steps=20)
    limit = {"time": 60.0} if end is let_time_pass else {}  # the least that Slurm knows
    fleet = strictly.fleet(1, requeue=False, partition="low", **limit)
    strictly.start(fleet, job)
    strictly.until(lambda: len(strictly.steps(job)) > 3)
    [worker] = strictly.backend.list(fleet)
    with frozen(processes("hostler.worker", strictly.world.store.url)):
        end(strictly.site, worker.id)
        strictly.until_gone(fleet, 180)
    strictly.until(lambda: Fates(by_sacct(strictly.site)).of(worker.id) == words)
    assert taken_over(strictly, fleet, job) == words
    strictly.until_gone(fleet, 240)
    whole(strictly, job, 20)
