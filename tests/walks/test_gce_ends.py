"""The three ends of a fleet of VMs: nothing is left for it, its deadline, `hostler down`."""

from __future__ import annotations

from pathlib import Path

import pytest

from gce_world import AtDeadline, CloudWorld, asked, cloud, eventually, weights
from platform_takeovers import AT_ONCE, vm_filled_again


def holds(world: CloudWorld, key: str) -> bool:
    assert world.gce.gcs is not None
    return world.gce.gcs.content("runs", f"cifar/{key}") is not None


def works(world: CloudWorld, said: str = "attempt 1 starts") -> list[str]:
    """VMs that have said so."""
    return [name for name in world.gce.names() if said in world.gce.serial(name)]


def costing(world: CloudWorld) -> list[str]:
    return [path for path in world.gce.left() if "/instances/" in path or "/disks/" in path]


@pytest.mark.parametrize("notice", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_vm_preempted_after_the_others_finished_returns_for_its_run(tmp_path: Path, notice: bool) -> None:
    with cloud(tmp_path) as world:
        world.project(workers=2, zones=["us-central1-a"])
        world.sweep_file(1, hold=world.hold())
        world.launched("grid.yaml")
        eventually(lambda: len(works(world)) == 1, 60)
        [busy] = works(world)
        eventually(lambda: works(world, "leaves its fleet") != [] or len(world.gce.machines()) == 1, 60)
        world.gce.preempt(busy, notice=notice)
        world.let_go()
        world.until_gone()
        assert world.states() == {"done": 1}
        assert world.weights(1) == {0: weights(0)}


def test_vm_of_the_same_name_takes_its_run_at_once(tmp_path: Path) -> None:
    """The lease of the one before is far from over. From the VM's start, with its boot."""
    with cloud(tmp_path) as world:
        assert vm_filled_again(world).within(AT_ONCE)
        world.let_go()
        world.until_gone()
        assert world.states() == {"done": 1}
        assert world.weights(1) == {0: weights(0)}


def test_sweep_that_comes_to_a_closed_fleet_gets_its_own(tmp_path: Path) -> None:
    with cloud(tmp_path) as world:
        world.project(workers=1, zones=["us-central1-a"])
        world.sweep_file(1, "first", steps=2)
        world.sweep_file(1, "second", steps=2)
        world.launched("first.yaml")
        eventually(lambda: holds(world, "fleets/burst/000001/closed.json"), 60)
        world.launched("second.yaml")
        world.until_gone()
        assert world.states("first") == world.states("second") == {"done": 1}


def test_sweep_that_comes_to_a_working_fleet_is_done_there(tmp_path: Path) -> None:
    with cloud(tmp_path) as world:
        world.project(workers=1, zones=["us-central1-a"])
        world.sweep_file(1, "first", hold=world.hold())
        world.sweep_file(2, "second", steps=2)
        world.launched("first.yaml")
        world.launched("second.yaml")
        world.let_go()
        world.until_gone()
        assert world.states("first") == {"done": 1} and world.states("second") == {"done": 2}
        assert not holds(world, "fleets/burst/000002/spec.json")


@pytest.mark.parametrize(
    "way",
    [
        AtDeadline.LOWERS,
        pytest.param(AtDeadline.KEEPS, marks=pytest.mark.soak),
        pytest.param(AtDeadline.RECREATES, marks=pytest.mark.soak),
    ],
)
def test_dead_fleet_that_cannot_start_costs_nothing_after_its_deadline(
    tmp_path: Path, way: AtDeadline
) -> None:
    with cloud(tmp_path, scale=60, at_deadline=way) as world:
        world.project(workers=2, zones=["us-central1-a"], more="deadline: 30m")
        world.sweep_file(2, steps=1000)
        world.launched("grid.yaml")
        eventually(lambda: len(works(world)) == 2, 60)
        world.break_startup()
        for name in world.gce.names():
            world.gce.kill_processes(name)
        world.gce.preempt(world.gce.names()[0], notice=False)
        assert costing(world)
        eventually(lambda: not costing(world), 90)
        done = world.run("down", "burst", timeout=120)
        assert done.code == 0, done.err
        assert world.gce.left() == []


def test_launch_of_a_fleet_taken_down_meanwhile_is_told(tmp_path: Path) -> None:
    with cloud(tmp_path) as world:
        world.project(workers=1, zones=["us-central1-a"])
        world.sweep_file(1)
        world.gce.stockout("us-central1-a")
        world.env |= {"HOSTLER_STOCKOUT": "300", "HOSTLER_MACHINES": "300"}
        process = world.start("sweep", "-y", "--on", "burst", "grid.yaml")
        eventually(lambda: asked(world, "regionInstanceGroupManagers.insert") > 0, 60)
        assert world.run("down", "burst", timeout=180).code == 0
        _, said = process.communicate(timeout=120)
        assert process.returncode == 1, said
        assert "burst/1 was taken down while it was being made, and runs of grid wait" in said
        assert "the same command again" in said and world.gce.left() == []
        world.gce.restock("us-central1-a")
        world.launched("grid.yaml")
        world.until_gone()
        assert world.states() == {"done": 1}


def test_down_saves_what_runs_and_proves_that_nothing_is_left(tmp_path: Path) -> None:
    with cloud(tmp_path) as world:
        world.project(workers=2)
        world.sweep_file(2, hold=world.hold())
        world.launched("grid.yaml")
        eventually(lambda: len(works(world)) == 2, 60)
        [one, _] = works(world)
        hosts = {row["host"] for row in world.run("status", "grid", "--json").json}
        assert hosts == set(world.gce.names())  # each by its own name
        printed = world.run("logs", f"burst/{one}", timeout=60)
        assert printed.code == 0 and "attempt 1 starts" in printed.out, printed.err
        done = world.run("down", "burst", timeout=180)
        assert done.code == 0 and "nothing of burst is left" in done.err, done.err
        assert world.gce.left() == []
        assert world.states() == {"queued": 2}
        world.let_go()
        up = world.run("up", "burst", "-y", timeout=120)
        assert up.code == 0, up.err
        world.until_gone()
        assert world.weights(2) == {n: weights(n) for n in range(2)}
