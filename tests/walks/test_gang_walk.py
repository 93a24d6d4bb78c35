"""Several workers train one model: they find each other, start together, and all leave at the end."""

from __future__ import annotations

from pathlib import Path

import pytest

from gang_world import MEETS, gang, told, work_together
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
