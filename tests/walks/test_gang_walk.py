"""Several workers train one model: they find each other, start together, and all leave at the end."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from cli_world import World as Typed
from cli_world import eventually
from gang_world import COUNTS, MEETS, SAVES_LATE, TRAINS, WAITS, gang, team, told, work_together
from hostler.records.checkpoint import checkpoints
from hostler.records.run import control
from hostler.records.run.gang import Gang
from hostler.spec.job import Job
from hostler.worker.gang import meeting
from worker_world import World, until


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


def test_two_workers_meet_at_the_port_and_both_leave(world: World) -> None:
    job = world.submit(MEETS, resources=gang(2))
    assert work_together(world, 2) == [0, 0]
    assert world.state(job).state == "done", world.log(job)
    assert told(world, job, "met") == [[0, 1]]
    ranks = sorted(told(world, job, "mine"), key=lambda one: one["RANK"])
    assert [one["NODE_RANK"] for one in ranks] == [0, 1]
    assert all(one["WORLD_SIZE"] == 2 and one["LOCAL_RANK"] == 0 for one in ranks)


def test_two_nodes_of_two_processes_are_four_ranks_in_order(world: World) -> None:
    job = world.submit(MEETS, resources=gang(2, 2))
    assert work_together(world, 2) == [0, 0]
    assert world.state(job).state == "done", world.log(job)
    ranks = sorted(told(world, job, "mine"), key=lambda one: one["RANK"])
    assert [(r["RANK"], r["NODE_RANK"], r["LOCAL_RANK"]) for r in ranks] == [
        (0, 0, 0),
        (1, 0, 1),
        (2, 1, 0),
        (3, 1, 1),
    ]
    assert all(one["LOCAL_WORLD_SIZE"] == 2 and one["GROUP_RANK"] == one["NODE_RANK"] for one in ranks)


def weights(world: World, job: Job) -> dict[int, str]:
    """What each rank had in the end; all attempts that came so far."""
    return dict(told(world, job, "weights"))


@pytest.mark.timeout(300)
@pytest.mark.parametrize("nodes", [2, pytest.param(4, marks=pytest.mark.soak)])
def test_rank_killed_mid_epoch_changes_no_bit_of_the_result(world: World, nodes: int) -> None:
    world.quick(grace=60.0)
    last = nodes - 1
    whole = world.submit(TRAINS, name="whole", resources=gang(nodes))
    assert work_together(world, nodes, 120) == [0] * nodes
    assert world.state(whole).state == "done", world.log(whole)
    job = world.submit(
        TRAINS,
        name="killed",
        resources=gang(nodes),
        env={"KILL": f"[{last}, 13]", "NAP": "0.15", "EVERY": "0.5"},
    )
    assert work_together(world, nodes, 180) == [0] * nodes
    assert world.state(job).state == "done", world.log(job)
    assert world.mark("killed").exists()
    assert world.state(job).attempts == 2
    assert "goes on from checkpoint" in world.log(job)
    assert len(set(weights(world, job).values())) == 1
    assert weights(world, job) == weights(world, whole)
    assert world.curve(job, f"loss{last}") == world.curve(whole, f"loss{last}")
    assert world.curve(job, "loss0") == world.curve(whole, "loss0")


def test_twelve_workers_have_ranks_in_numeric_order(world: World) -> None:
    job = world.submit(MEETS, resources=gang(12))
    assert work_together(world, 12, 120) == [0] * 12
    assert world.state(job).state == "done", world.log(job)
    assert told(world, job, "met") == [list(range(12))]
    go = Gang(world.store, job.run_id(0), 1).look().go
    assert go is not None and [node.slot for node in go.nodes] == list(range(12))


def test_two_gangs_with_too_few_workers_run_one_by_one(world: World) -> None:
    jobs = [world.submit(MEETS, name=name, resources=gang(3)) for name in ("one", "two")]
    assert work_together(world, 4, 90) == [0] * 4
    for job in jobs:
        assert world.state(job).state == "done", world.log(job)
        assert told(world, job, "met") == [[0, 1, 2]]
        assert all(entry.get("counts") is None for entry in world.entries(job))


def test_rank_that_never_comes_is_named_and_fails_the_run(world: World) -> None:
    world.quick(gather=3.0)  # in which two workers find each other on a busy machine
    job = world.submit(MEETS, resources=gang(3), retries=1)
    assert work_together(world, 2, 60) == [0, 0]
    state = world.state(job)
    assert state.state == "failed" and state.attempts == 2, world.log(job)
    message = (state.failure or {})["message"]
    assert message.startswith("2 of 3 workers joined within") and "no other worker is alive" in message
    assert "start as many workers" in (state.failure or {})["advice"]


def test_who_is_busy_elsewhere_is_named_as_missing(world: World) -> None:
    world.quick(gather=0.6)
    other = world.submit("import time; time.sleep(300)", name="long")
    with world.working(only=("long",)):
        until(lambda: world.state(other).state == "running")
        job = world.submit(MEETS, resources=gang(2), retries=0)
        assert world.work(only=(job.name,)) == 0
    message = (world.state(job).failure or {})["message"]
    assert "serves only long" in message


def test_gang_waits_for_its_busy_workers_without_a_failure(
    world: World,
) -> None:
    world.quick(gather=0.6, grace=10.0)
    first = world.submit(WAITS, name="first", resources=gang(2))
    with team(world, 3):
        until(lambda: world.mark("0").exists() and world.mark("1").exists(), 60)
        job = world.submit(MEETS, name="second", resources=gang(2), retries=0)
        until(lambda: sum(e["kind"] == "release" for e in world.entries(job)) >= 2, 60)
        assert world.state(job).state in ("queued", "running"), world.log(job)
        assert "is busy with" in world.log(job)
        control.stop(world.store, world.key(first))
        until(lambda: world.state(job).state == "done", 60)
    assert {e.get("counts") for e in world.entries(job)} == {None}


def test_fewer_are_enough_where_the_user_allows(world: World) -> None:
    world.quick(lease=1.0)
    job = world.submit(MEETS, resources=gang(4, min_nodes=2))
    assert work_together(world, 3, 60) == [0, 0, 0]
    assert world.state(job).state == "done", world.log(job)
    assert told(world, job, "met") == [[0, 1, 2]]


def test_no_port_that_may_be_used_is_free(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = meeting.listening()
    with taken:
        port = taken.getsockname()[1]
        monkeypatch.setenv("HOSTLER_PORTS", f"{port}-{port}")
        job = world.submit(MEETS, resources=gang(2), retries=0)
        assert work_together(world, 2, 60, timing=world.timing)
    state = world.state(job)
    assert state.state == "failed", world.log(job)
    assert f"no free port from {port} to {port}" in (state.failure or {})["message"]


def test_port_taken_by_another_program_is_reported_and_replaced(world: World) -> None:
    taken = "import sys; sys.exit('OSError: [Errno 98] Address already in use')"
    first = f"import os\nif os.environ['HOSTLER_ATTEMPT'] == '1':\n    {taken}\n"
    job = world.submit(first + MEETS, resources=gang(2))
    assert work_together(world, 2, 60) == [0, 0]
    assert world.state(job).state == "done", world.log(job)
    assert next(e for e in world.entries(job) if e["kind"] == "release")["why"] == "port"


def test_a_stop_ends_all_ranks(world: World) -> None:
    job = world.submit(WAITS, resources=gang(2))
    with team(world, 2):
        until(lambda: world.mark("0").exists() and world.mark("1").exists())
        control.stop(world.store, world.key(job))
        until(lambda: world.state(job).state == "stopped")


def test_worker_told_to_leave_gives_the_whole_gang_back(world: World) -> None:
    job = world.submit(WAITS, resources=gang(2))
    with team(world, 2) as workers:
        until(lambda: world.mark("0").exists() and world.mark("1").exists())
        leader = world.state(job).session
        member = next(one for one in workers if one._m.session != leader)
        member.tell("preempted")
        until(lambda: any(e["kind"] == "release" for e in world.entries(job)))
    release = next(e for e in world.entries(job) if e["kind"] == "release")
    assert release["why"] == "preempted" and release.get("counts") is None


def test_leader_told_to_leave_stops_the_others_and_keeps_saves(world: World) -> None:
    world.quick(grace=60.0)
    job = world.submit(SAVES_LATE, resources=gang(2))
    with team(world, 2) as workers:
        until(lambda: world.mark("0").exists() and world.mark("1").exists())
        leader = next(one for one in workers if one._m.session == world.state(job).session)
        leader.tell("preempted")
        until(lambda: any(e["kind"] == "release" for e in world.entries(job)))
    release = next(e for e in world.entries(job) if e["kind"] == "release")
    assert release["why"] == "preempted" and release.get("counts") is None
    assert world.mark("told-1").exists(), "the other rank was asked, not cut off"
    assert checkpoints.committed(world.store, world.key(job).run)


@pytest.mark.parametrize("who", ["leader", "member"])
def test_dead_worker_is_missed_within_a_lease_and_run_continues(
    world: World, tmp_path: Path, who: str
) -> None:
    world.quick(lease=2.0)
    script = "import os, sys\nif os.environ['HOSTLER_ATTEMPT'] != '1':\n    sys.exit(0)\n" + WAITS
    job = world.submit(script, resources=gang(2))
    with ExitStack() as stack:
        if who == "member":
            stack.enter_context(team(world, 1))
            until(lambda: world.state(job).state == "running", 60)
        other = stack.enter_context(apart(world, tmp_path / "other"))
        until(lambda: world.state(job).state == "running", 60)
        if who == "leader":
            stack.enter_context(team(world, 1))
        until(lambda: world.mark("0").exists() and world.mark("1").exists(), 60)
        other.kill()
        stack.enter_context(team(world, 1))
        until(lambda: world.state(job).state == "done", 60)
    assert world.state(job).attempts == 2
    [closing] = [e for e in world.entries(job)[1:] if e["kind"] in ("release", "claim")][:1]
    assert (closing if who == "member" else closing["after"])["counts"] == "lost"
    assert who == "leader" or closing["why"] == "rank-lost"


@contextmanager
def apart(world: World, cache: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A worker that is a process of its own, and can be killed."""
    words = [sys.executable, "-m", "hostler.worker", world.store.url, "--no-parent"]
    worker = subprocess.Popen(words, env={**os.environ, "HOSTLER_CACHE": str(cache)})
    try:
        yield worker
    finally:
        worker.kill()
        worker.wait()


def totals(ranks: int, steps: int) -> list[list[int]]:
    return [[rank, ranks, (rank + 1) * sum(range(steps))] for rank in range(ranks)]


def test_all_ranks_leave_and_continue_at_the_same_step(world: World) -> None:
    world.quick(grace=10.0)
    job = world.submit(COUNTS, resources=gang(2, 2), env={"STEPS": "200", "NAP": "0.02"})
    with team(world, 2):
        until(lambda: world.mark("1-20-3").exists(), 60)
        control.pause(world.store, world.key(job))
        until(lambda: world.state(job).state == "paused", 60)
    assert world.log(job).count("stops: a person paused it") == 4
    assert len(set(re.findall(r"saved at step (\d+), stops", world.log(job)))) == 1
    control.resume(world.store, world.key(job))
    assert work_together(world, 2) == [0, 0]
    assert world.state(job).state == "done", world.log(job)
    assert sorted(told(world, job, "total")) == totals(4, 200)


def test_run_continues_with_fewer_nodes_where_the_user_allows(world: World) -> None:
    world.quick(grace=10.0)
    job = world.submit(COUNTS, resources=gang(3, min_nodes=2), env={"STEPS": "120", "NAP": "0.05"})
    with team(world, 3) as workers:
        until(lambda: world.mark("1-30-2").exists() and bool(world.committed(job)), 60)
        leader = world.state(job).session
        next(one for one in workers if one._m.session != leader).tell("preempted")
        until(lambda: world.state(job).state == "done", 60)
    assert "was saved by 3 processes: now 2 resume from it" in world.log(job)
    assert sorted(told(world, job, "total")) == totals(2, 120)


def test_one_worker_starts_all_processes_of_a_single_node(world: World) -> None:
    job = world.submit(MEETS, resources=gang(1, 3))
    assert world.work() == 0
    assert world.state(job).state == "done", world.log(job)
    assert told(world, job, "met") == [[0, 1, 2]]


def test_one_process_of_a_node_that_fails_ends_the_others(world: World) -> None:
    script = "import os, sys\nif os.environ['RANK'] == '1':\n    sys.exit(3)\n" + WAITS
    job = world.submit(script, resources=gang(1, 2), retries=0)
    assert world.work() == 0
    assert world.state(job).state == "failed" and "exit code 3" in str(world.state(job).failure)


TORCHRUN = """
import os
import torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([float(dist.get_rank())])
dist.all_reduce(total)
os.write(1, f"sum [{dist.get_rank()}, {dist.get_world_size()}, {total.item()}]\\n".encode())
dist.barrier()
dist.destroy_process_group()
"""


MODULE = (sys.executable, "-m", "torch.distributed.run", "train.py")


@pytest.mark.timeout(200)
@pytest.mark.parametrize(
    "words", [MODULE, ("bash", "-c", f"cd . && {' '.join(MODULE)}")], ids=["alone", "shell"]
)
def test_torchrun_is_started_as_it_is_on_each_node(world: World, words: tuple[str, ...]) -> None:
    job = world.submit(TORCHRUN, command=words, resources=gang(2, 2))
    assert work_together(world, 2, 150) == [0, 0]
    assert world.state(job).state == "done", world.log(job)
    assert sorted(told(world, job, "sum")) == [[rank, 4, 6.0] for rank in range(4)]


def test_hostler_run_starts_as_many_workers_as_the_run_takes(tmp_path: Path) -> None:
    world = Typed(tmp_path)
    world.write("train.py", MEETS)
    world.write("hostler.yaml", "command: python train.py\nresources: {nodes: 3}\n")
    try:
        answer = world.run("run", timeout=120)
        assert answer.code == 0 and "met [0, 1, 2]" in answer.out, answer.err
        eventually(lambda: not world.processes())
    finally:
        world.close()


@pytest.mark.parametrize(
    "fleet",
    [
        "{backend: local, workers: 2}",
        "{backend: ssh, hosts: [one, two]}",
        "{backend: kubernetes, image: 'python:3.11', workers: 2}",
    ],
    ids=["local", "ssh", "kubernetes"],
)
def test_fleet_with_fewer_workers_than_nodes_is_refused_first(tmp_path: Path, fleet: str) -> None:
    world = Typed(tmp_path)
    store = "s3://none/none" if "kubernetes" in fleet else "runs"
    head = f"command: python train.py\nstore: {store}\nresources: {{nodes: 3}}\n"
    world.write("hostler.yaml", f"{head}fleets: {{few: {fleet}}}\n")
    world.write("grid.yaml", "name: grid\nparameters: {lr: [1]}\n")
    done = world.run("sweep", "-y", "--on", "few", "grid.yaml")
    assert done.code == 2 and "a run takes 3 workers at once, but few has 2" in done.err, done.err
    assert "workers: 3 under fleets" in done.err
