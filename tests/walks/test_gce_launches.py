"""A submitter killed at any step of launching leaves nothing that the next command does not settle."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from gce_world import CloudWorld, asked, cloud, weights

MAKING = ("instanceTemplates.insert", "regionInstanceGroupManagers.insert")


def kill_submitter_at(world: CloudWorld, step: int) -> None:
    """Type the command, and kill it once so many things were asked for: a template, then two groups."""
    process = world.start("sweep", "-y", "--on", "burst", "grid.yaml")
    end = time.monotonic() + 90
    while asked(world, *MAKING) < step or not world.gce.requests:
        assert time.monotonic() < end and process.poll() is None, process.communicate()
        time.sleep(0.005)
    process.kill()
    process.communicate()


@pytest.mark.parametrize("step", [2, *(pytest.param(n, marks=pytest.mark.soak) for n in (0, 1, 3))])
def test_repeated_command_continues_where_a_killed_submitter_was(tmp_path: Path, step: int) -> None:
    with cloud(tmp_path) as world:
        world.project(workers=2)
        world.sweep_file(2)
        kill_submitter_at(world, step)
        world.launched("grid.yaml")
        world.until_gone()
        assert world.states() == {"done": 2}
        assert world.weights(2) == {n: weights(n) for n in range(2)}


@pytest.mark.parametrize("step", [2, *(pytest.param(n, marks=pytest.mark.soak) for n in (0, 1, 3))])
def test_down_removes_all_that_a_killed_submitter_has_made(tmp_path: Path, step: int) -> None:
    with cloud(tmp_path) as world:
        world.project(workers=2)
        world.sweep_file(2, steps=400)
        kill_submitter_at(world, step)
        done = world.run("down", "burst", timeout=180)
        assert done.code == 0 and "nothing of burst is left" in done.err, done.err
        world.until_gone(5)
        again = world.run("down", "burst", timeout=60)
        assert again.code == 0 and "nothing of burst is left" in again.err
