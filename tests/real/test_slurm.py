"""hostler on a real Slurm: several nodes on this machine, started by the tests."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hostler.backends.base import Backend, Launch, Question
from hostler.backends.fleet_files import Discovery
from hostler.backends.registry import backend as by_name
from hostler.backends.slurm import discovery, doctor
from hostler.errors import MachineError, UsageError
from hostler.records.checkpoint import checkpoints
from hostler.records.rows import rows
from hostler.spec.job import Checkpointing, Job, Resources
from hostler.spec.project import Fleet
from hostler.testing.backend_contract import BackendContract
from slurm_cluster import Cluster, cluster
from slurm_world import COUNTS, SlurmWorld
from worker_world import World

TIMES = {"flush": 0.1, "flush_max": 0.2, "settle": 0.1, "grace": 3, "poll": 0.05, "wait_max": 0.3, "idle": 20}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("slurm"), nodes=2, cpus=8) as made:
        yield made


@pytest.fixture(autouse=True)
def at_the_site(site: Cluster, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for name, value in site.variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


class TestSlurm(BackendContract):
    chooses = True

    @pytest.fixture
    def backend(self) -> Backend:
        return by_name("slurm")

    @pytest.fixture
    def fleet(self, backend: Backend) -> Iterator[Fleet]:
        fleet = Fleet(name="ta'u; echo x", backend="slurm", workers=2)
        yield fleet
        backend.stop(fleet, now=True)

    @pytest.fixture
    def launch(self, tmp_path: Path) -> Launch:
        store = tmp_path / "a store with 'quotes' and 100 %j"
        store.mkdir()
        return Launch(store=str(store), python=sys.executable, logs=f"{store}/logs")

    def test_machines_say_what_they_are(self, backend: Backend, fleet: Fleet, launch: Launch) -> None:
        """They are Slurm's to choose, so nobody can be asked."""
        assert list(backend.survey(fleet, Question())) == []

    def test_hosts_that_have_their_workers_are_left_alone(
        self, backend: Backend, fleet: Fleet, launch: Launch
    ) -> None:
        """The machines are Slurm's to choose: what counts is how many tasks are in its queue."""
        assert backend.plan(fleet, replace(launch, skip=frozenset({"n1"}))).workers == fleet.workers


@pytest.fixture
def here(site: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlurmWorld]:
    made = at(site, tmp_path, monkeypatch)
    yield made
    made.backend.stop(made.fleet(), now=True)
    made.until_gone(made.fleet())


def at(site: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SlurmWorld:
    for name, value in TIMES.items():
        monkeypatch.setenv(f"HOSTLER_{name.upper()}", str(value))
    return SlurmWorld(site, World(tmp_path / "it's here"))


def test_array_ends_one_run_per_task_within_its_parallel_limit(here: SlurmWorld) -> None:
    job = here.world.submit(
        "import time; time.sleep(0.3); print('{\"loss\": 1}')", runs=[{"i": i} for i in range(6)]
    )
    fleet = here.fleet(workers=2)
    [started] = here.start(fleet, job)
    assert started.count == 6
    most = 0
    deadline = time.monotonic() + 120
    while here.backend.list(fleet):
        most = max(most, list(here.site.states().values()).count("RUNNING"))
        assert time.monotonic() < deadline, here.told()
        time.sleep(0.1)
    assert here.states(job) == ["done"] * 6 and 1 <= most <= 2
    assert {row.metrics["loss"] for row in rows(here.world.store)} == {1}
    logs = sorted(Path(here.world.store.url).glob("fleets/tau/logs/*.log"))
    assert len(logs) == 6 and all(path.read_text().count("attempt 1 starts") == 1 for path in logs)
    assert here.backend.logs(started).count(b"attempt 1 starts") == 6


def test_squeue_shows_sweep_and_run(here: SlurmWorld) -> None:
    job = here.world.submit(COUNTS, name="lr-search", env={"STEPS": "100"})
    [started] = here.start(here.fleet(1), job)
    names = lambda: here.site.run("squeue", "--noheader", "--format", "%j").split()  # noqa: E731
    here.until(lambda: names() == [job.run_id(0)])
    assert "lr-search" in job.run_id(0)
    [shown] = here.backend.list(here.fleet(1))
    assert shown.id == f"{started.id}_0" and shown.detail == "runs" and shown.host == "n1"


def test_a_failed_run_is_tried_again_by_the_same_task(here: SlurmWorld) -> None:
    script = "import os; p = os.environ['MARKS'] + '/x'; n = os.path.exists(p); open(p, 'w'); assert n"
    job = here.world.submit(script, retries=2)
    here.start(here.fleet(1), job)
    here.until_gone(here.fleet(1))
    assert here.states(job) == ["done"] and here.world.state(job).attempts == 2


def test_workers_that_take_several_runs_are_as_many_tasks(here: SlurmWorld) -> None:
    job = here.world.submit("print(1)", runs=[{"i": i} for i in range(8)])
    fleet = here.fleet(workers=2, runs_per_worker=4, slots=2)
    [started] = here.start(fleet, job)
    here.until_gone(fleet)
    assert started.count == 2 and here.states(job) == ["done"] * 8


def test_scancel_gives_the_run_back_and_a_later_task_continues(here: SlurmWorld) -> None:
    job = here.world.submit(COUNTS, env={"STEPS": "12", "HOLD": "5"}, checkpoint=Checkpointing(every=0.2))
    [started] = here.start(here.fleet(1), job)
    here.until(lambda: len(here.steps(job)) > 3)
    here.site.run("scancel", started.id)
    here.until_gone(here.fleet(1))
    assert here.states(job) == ["queued"]
    here.start(here.fleet(1), job)
    here.until_gone(here.fleet(1))
    assert here.states(job) == ["done"]
    assert sorted(set(here.steps(job))) == list(range(12))
    assert "goes on from checkpoint 1-" in here.world.log(job)


def test_stopping_the_fleet_saves_first(here: SlurmWorld, tmp_path: Path) -> None:
    job = here.world.submit(COUNTS, runs=[{"i": 0}, {"i": 1}], env={"STEPS": "500"})
    fleet = here.fleet(workers=1)
    here.start(fleet, job)
    here.until(lambda: len(here.steps(job)) > 2)
    assert sum(worker.count for worker in here.backend.stop(fleet)) == 2
    here.until_gone(fleet)
    assert here.states(job) == ["queued", "queued"]
    store, run = here.world.store, job.run_id(0)
    newest = checkpoints.read(store, run, here.world.committed(job)[0])
    checkpoints.restore(store, newest, tmp_path / "restored")
    assert json.loads((tmp_path / "restored" / "at.json").read_text()) == {"at": max(here.steps(job)) + 1}


def test_waiting_array_is_counted_and_ended_with_scattered_tasks(here: SlurmWorld) -> None:
    job = here.world.submit("pass", runs=[{"i": i} for i in range(80)])
    fleet = here.fleet(workers=2)
    here.site.run("scontrol", "update", "PartitionName=main", "State=DOWN")
    try:
        [started] = here.start(fleet, job)
        here.site.run("scancel", f"{started.id}_[{','.join(str(n) for n in range(1, 80, 2))}]")
        assert sum(worker.count for worker in here.backend.list(fleet)) == 40
        here.backend.stop(fleet)
        here.until(lambda: not here.backend.list(fleet), 60)
    finally:
        here.site.run("scontrol", "update", "PartitionName=main", "State=UP")


def test_requeue_by_the_site_restarts_the_run_from_its_checkpoint(here: SlurmWorld) -> None:
    job = here.world.submit(COUNTS, env={"STEPS": "12", "HOLD": "5"}, checkpoint=Checkpointing(every=0.2))
    [started] = here.start(here.fleet(1), job)
    here.until(lambda: len(here.steps(job)) > 3)
    here.site.run("scontrol", "requeue", f"{started.id}_0")
    here.until(lambda: "PENDING" in here.site.states().values())
    [waiting] = here.backend.list(here.fleet(1))
    assert waiting.detail.startswith("waits: its start time has not come")
    here.until(lambda: "released" in here.told())
    here.until(lambda: "comp" not in here.site.run("sinfo", "-h", "-o", "%t"), 120)  # else Slurm takes the
    here.until(lambda: started_again(here, job, f"{started.id}_0"), 240)  # old end for the new one's
    here.until_gone(here.fleet(1), 120)
    assert sorted(set(here.steps(job))) == list(range(12))


def started_again(here: SlurmWorld, job: Job, task: str) -> bool:
    """Whether the run is done; until then the site starts its task at once, and again where Slurm, on a busy
    machine, took the old end for the new one's after all and has forgotten the task."""
    state = here.site.states().get(task)
    if here.states(job) == ["done"]:
        return True
    if state is None:
        here.site.run("scontrol", "requeue", task)
    elif state == "PENDING":
        here.site.run("scontrol", "update", f"JobId={task}", "StartTime=now")
    return False


def test_a_persons_own_script_is_kept_as_it_is(here: SlurmWorld) -> None:
    job = here.world.submit("print(1)")
    own = '#!/bin/bash\n#SBATCH --comment=mine\necho "from my own script: $SLURM_JOB_ID"\n"$@"\n'
    fleet = here.fleet(1, script="run.sbatch")
    [started] = here.start(fleet, job, script=own)
    here.until_gone(fleet)
    assert here.states(job) == ["done"] and b"from my own script" in here.backend.logs(started)


def test_script_that_ignores_its_arguments_is_refused(here: SlurmWorld) -> None:
    job = here.world.submit("print(1)")
    with pytest.raises(UsageError, match=r'run.sbatch does not run its arguments.*"\$@"'):
        here.start(here.fleet(1, script="run.sbatch"), job, script="#!/bin/bash\npython train.py # $@\n")
    assert not here.backend.list(here.fleet(1))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"partition": "nope"}, "the partition does not exist"),
        ({"constraint": "nope"}, "no machine has that feature"),
        ({"gres": "tpu:1"}, "does not know that GPU"),
    ],
)
def test_a_rejected_job_is_one_clear_line(here: SlurmWorld, options: dict[str, Any], said: str) -> None:
    job = here.world.submit("print(1)")
    with pytest.raises(MachineError, match=said) as error:
        here.start(here.fleet(1, **options), job)
    assert "\n" not in str(error.value) and error.value.hint and not here.backend.list(here.fleet(1))


def test_the_doctor_hears_the_controller(site: Cluster) -> None:
    [found] = doctor.check(True)
    assert found.level == "ok" and found.detail.startswith("slurm")
    assert found.detail.endswith("; its controller answers; partitions: main")


def test_init_finds_the_partition_of_the_cluster(site: Cluster) -> None:
    assert discovery.discover() == Discovery("sbatch, partition main", {"partition": "main"})


def test_without_sbatch_it_says_where_to_go(here: SlurmWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    job = here.world.submit("print(1)")
    with monkeypatch.context() as nowhere, pytest.raises(MachineError, match=r"not found here .*login node"):
        nowhere.setenv("PATH", "/nowhere")
        here.start(here.fleet(1), job)


def test_gpus_are_asked_for_and_are_what_the_run_sees(here: SlurmWorld) -> None:
    plan = here.backend.plan(
        here.fleet(1), here.launch(here.world.submit("print(1)"), resources=Resources(gpus=2, cpus=3))
    )
    assert "--gres=gpu:2" in plan.commands[0] and "--cpus-per-task=3" in plan.commands[0]
    seen = here.site.run("srun", "--gres=gpu:1", "printenv", "CUDA_VISIBLE_DEVICES")
    assert seen.strip() == "0"
