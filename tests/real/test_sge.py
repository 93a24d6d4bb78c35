"""hostler on a real Grid Engine, which the tests start: the contract, walks, and what befalls its tasks."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from test_slurm import TIMES

import hostler
from frozen import processes
from gridengine_cluster import Grid, grid
from hostler.backends.base import Backend, Launch, Question
from hostler.backends.registry import backend as by_name
from hostler.backends.sge import discovery, doctor
from hostler.errors import MachineError
from hostler.spec.job import Checkpointing, Resources
from hostler.spec.project import Fleet
from hostler.testing.backend_contract import BackendContract
from slurm_world import COUNTS, TRAINS, SlurmWorld
from worker_world import World

pytestmark = [pytest.mark.real, pytest.mark.needs("sge_qmaster")]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    with grid(tmp_path_factory.mktemp("grid")) as made:
        yield made


@pytest.fixture(autouse=True)
def at_the_site(site: Grid, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    times = {f"HOSTLER_{name.upper()}": str(value) for name, value in TIMES.items()}
    for name, value in {**site.variables, **times}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


class TestSge(BackendContract):
    chooses = True

    @pytest.fixture
    def backend(self) -> Backend:
        return by_name("sge")

    @pytest.fixture
    def fleet(self, backend: Backend) -> Iterator[Fleet]:
        fleet = Fleet(name="gri'd; echo x", backend="sge", workers=2)
        yield fleet
        backend.stop(fleet, now=True)

    @pytest.fixture
    def launch(self, tmp_path: Path) -> Launch:
        store = tmp_path / "a store, with 'quotes': 100 $JOB_ID"
        store.mkdir()
        return Launch(store=str(store), python=sys.executable, logs=f"{store}/logs")

    def test_hosts_that_have_their_workers_are_left_alone(
        self, backend: Backend, fleet: Fleet, launch: Launch
    ) -> None:
        """The machines are Grid Engine's to choose: what counts is how many tasks are in its queue."""
        assert backend.plan(fleet, replace(launch, skip=frozenset({"n1"}))).workers == fleet.workers


class GridWorld(SlurmWorld):
    """The same world, whose fleets are on Grid Engine."""

    site: Any

    def __init__(self, site: Grid, world: World) -> None:
        super().__init__(site, world, "grid")  # type: ignore[arg-type]
        self.backend = by_name("sge")  # type: ignore[assignment]

    def fleet(self, workers: int = 2, **options: Any) -> Fleet:
        return replace(super().fleet(workers, **options), backend="sge")


@pytest.fixture
def here(site: Grid, tmp_path: Path) -> Iterator[GridWorld]:
    made = GridWorld(site, World(tmp_path / "it's here"))
    yield made
    made.backend.stop(made.fleet(), now=True)
    made.until_gone(made.fleet())


def test_array_ends_one_run_per_task_within_its_limit(here: GridWorld) -> None:
    job = here.world.submit("print('{\"loss\": 1}')", runs=[{"i": i} for i in range(5)])
    [started] = here.start(here.fleet(workers=2), job)
    assert started.count == 5
    here.until_gone(here.fleet())
    assert here.states(job) == ["done"] * 5
    logs = sorted(Path(here.world.store.url).glob("fleets/grid/logs/*.log"))
    assert len(logs) == 5 and here.backend.logs(started).count(b"attempt 1 starts") == 5


def test_qdel_saves_the_run_and_a_later_task_goes_on(here: GridWorld) -> None:
    job = here.world.submit(COUNTS, env={"STEPS": "12", "HOLD": "5"}, checkpoint=Checkpointing(every=0.2))
    [started] = here.start(here.fleet(1), job)
    here.until(lambda: len(here.steps(job)) > 3)
    here.site.run("qdel", f"{started.id}.1")
    here.until_gone(here.fleet(1))
    assert here.states(job) == ["queued"] and "released" in here.told()
    here.start(here.fleet(1), job)
    here.until_gone(here.fleet(1))
    assert here.world.curve(job, "value") == [(step, float(step * 2)) for step in range(12)]


def test_node_that_dies_has_its_task_restarted_with_equal_weights(here: GridWorld) -> None:
    undisturbed = here.world.submit(TRAINS, name="calm", env={"STEPS": "30"})
    here.start(here.fleet(1), undisturbed)
    here.until_gone(here.fleet(1))
    given = {"STEPS": "30", "PACE": "0.05", "HOLD": "12", "HOSTLER_LEASE": "4"}
    job = here.world.submit(TRAINS, name="struck", env=given, checkpoint=Checkpointing(every=0.2))
    here.start(here.fleet(1), job)
    here.until(lambda: here.world.committed(job) and len(here.steps(job)) == 12)
    here.site.kill_node()
    marks = Path(job.env["MARKS"])
    (marks / f"go-{job.run_id(0)}").touch()
    here.site.start_node()
    here.until(lambda: here.states(job) == ["done"], 120)
    here.until_gone(here.fleet(1))
    weights = [here.world.log(one).split("weights ")[1].splitlines()[0] for one in (undisturbed, job)]
    assert weights[0] == weights[1] and here.world.state(job).attempts == 2
    assert "goes on from checkpoint" in here.world.log(job)


def test_time_limit_saves_the_run_and_queues_its_task_again(here: GridWorld) -> None:
    job = here.world.submit(COUNTS, env={"STEPS": "12", "HOLD": "5"}, checkpoint=Checkpointing(every=0.2))
    [started] = here.start(here.fleet(1, time=12.0), job)
    here.until(lambda: here.states(job) == ["done"], 120)
    here.until_gone(here.fleet(1))
    told = here.backend.logs(started)
    assert b"it is queued again" in told and told.count(b"no run is left") <= 1
    assert here.world.curve(job, "value") == [(step, float(step * 2)) for step in range(12)]
    assert here.world.state(job).attempts == 2


def test_refusal_says_what_to_do_and_leaves_nothing(here: GridWorld) -> None:
    job = here.world.submit("pass")
    with pytest.raises(MachineError, match="qsub refused") as error:
        here.start(here.fleet(1, queue="nowhere.q"), job)
    assert "set `queue`" in error.value.hint
    with pytest.raises(MachineError) as error:
        here.start(here.fleet(1, pe="nope", resources=Resources(cpus=2)), job)
    assert "set `pe`" in error.value.hint
    assert not here.backend.list(here.fleet()) and not here.site.states()


def test_several_cpus_are_slots_of_one_machine(here: GridWorld) -> None:
    job = here.world.submit("import os; print('slots', os.environ['NSLOTS'])")
    here.start(here.fleet(1, resources=Resources(cpus=2, memory=10**6)), job)
    here.until_gone(here.fleet(1))
    assert "slots 2" in here.world.log(job)


def test_doctor_and_init_find_the_queue(site: Grid, monkeypatch: pytest.MonkeyPatch) -> None:
    [check] = doctor.checks([], "")
    assert (check.level, "main.q" in check.detail) == ("ok", True)
    found = discovery.discover()
    assert found and found.values == {"queue": "main.q"}
    monkeypatch.setenv("SGE_QMASTER_PORT", "1")
    [check] = doctor.checks([Fleet("g", "sge")], "")
    assert check.level == "bad" and "does not answer" in check.detail and discovery.discover() is None


TRAIN = """
import argparse, json, time
asked = argparse.ArgumentParser()
for name in ("--lr", "--width", "--nap"):
    asked.add_argument(name, type=float, default=0.0)
given = asked.parse_args()
time.sleep(given.nap)
print(json.dumps({"step": 1, "score": given.lr * given.width}))
"""
SWEEP = "name: grid\ncommand: python train.py\nmetric: score\nparameters: {lr: [0.1, 0.2], width: [1, 2]}\n"


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    folder = tmp_path / "it's my project"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "grid.yaml").write_text(SWEEP)
    (folder / "hostler.yaml").write_text("name: mine\nfleets: {cluster: {backend: sge, workers: 2}}\n")
    return folder


def said(folder: Path, *words: str) -> str:
    command = [sys.executable, "-m", "hostler", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout + done.stderr


def test_sweep_file_is_one_command_and_ends_as_a_frame(desk: Path) -> None:
    assert "-t 1-4 -tc 2" in said(desk, "sweep", "--on", "cluster", "--dry-run", "grid.yaml")
    said(desk, "sweep", "--on", "cluster", "-y", "grid.yaml")
    said(desk, "wait", "grid")
    frame = hostler.frame(str(desk / ".hostler"), "grid")
    assert set(frame["state"]) == {"done"}
    assert sorted(frame["score"]) == pytest.approx([0.1, 0.2, 0.2, 0.4])


def test_down_leaves_neither_task_nor_process(desk: Path, site: Grid) -> None:
    (desk / "slow.yaml").write_text(SWEEP.replace("grid", "slow").replace("{lr", "{nap: [600], lr"))
    said(desk, "sweep", "--on", "cluster", "-y", "slow.yaml")
    shown = list[str]()
    why = "cluster: 2 run, 2 wait: for a free slot"
    site.until(lambda: shown.append(said(desk, "status")) or why in shown[-1], 60, f"{shown[-1:]}")
    assert "are in the queue already" in said(desk, "sweep", "--on", "cluster", "-y", "-r", "slow.yaml")
    assert "nothing of cluster is left" in said(desk, "down", "cluster")
    site.until(lambda: not site.states(), 60, "something is left in the queue")
    assert not processes("hostler.worker", str(desk / ".hostler"))


def test_secret_is_neither_in_the_job_nor_left_after_down(
    desk: Path, site: Grid, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("MY_TOKEN", "s3cr3t-value")
    monkeypatch.setenv("OTHER_API_KEY", "s3cr3t-that-nobody-declared")
    (desk / "train.py").write_text("import os, time; print(len(os.environ['MY_TOKEN'])); time.sleep(600)\n")
    (desk / "hostler.yaml").write_text(
        "name: mine\nsecrets: [MY_TOKEN]\nfleets: {cluster: {backend: sge, workers: 1}}\n"
    )
    said(desk, "run", "--detach", "--name", "one", "--on", "cluster", "train.py")
    site.until(lambda: "12" in said(desk, "logs", "one"), 60, "the run has not got it")
    assert "s3cr3t" not in site.run("qstat", "-j", "*")
    said(desk, "down", "cluster")
    assert not list((tmp_path / "cache" / "secrets").glob("*.json"))


def test_machine_without_the_engine_is_told_where_to_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    [machine] = by_name("sge").survey(Fleet("g", "sge"), Question())
    assert machine.problem == "qsub was not found here" and "login node" in machine.hint
