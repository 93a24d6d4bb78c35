"""Several workers train one model: they find each other, start together, and all leave at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from gang_world import MEETS, TRAINS, gang, told, work_together
from hostler.spec.job import Job
from worker_world import World


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


def test_two_nodes_with_two_processes_each_are_four_ranks_in_order(world: World) -> None:
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
def test_a_rank_killed_mid_epoch_changes_no_bit_of_the_result(world: World) -> None:
    world.quick(grace=20.0)
    whole = world.submit(TRAINS, name="whole", resources=gang(4))
    assert work_together(world, 4, 120) == [0, 0, 0, 0]
    assert world.state(whole).state == "done", world.log(whole)
    job = world.submit(
        TRAINS, name="killed", resources=gang(4), env={"KILL": "[2, 13]", "NAP": "0.15", "EVERY": "0.5"}
    )
    assert work_together(world, 4, 180) == [0, 0, 0, 0]
    assert world.state(job).state == "done", world.log(job)
    assert world.mark("killed").exists()
    assert world.state(job).attempts == 2
    assert "goes on from checkpoint" in world.log(job)
    assert len(set(weights(world, job).values())) == 1
    assert weights(world, job) == weights(world, whole)
    assert world.curve(job, "loss3") == world.curve(whole, "loss3")
    assert world.curve(job, "loss0") == world.curve(whole, "loss0")
