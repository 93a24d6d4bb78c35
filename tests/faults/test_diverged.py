"""A training that raises `hostler.Diverged` ends as diverged, and is not tried again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cli_world import World

SCRIPT = """
import hostler
with hostler.start({"lr": 1.0}) as run:
    for step in run.steps(5):
        run.log(loss=float("nan"))
        raise hostler.Diverged("the loss is nan at step 1")
"""


def test_under_a_worker_it_is_diverged_after_one_attempt(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.write("run.py", SCRIPT)
    assert world.run("run", "run.py").code == 1
    (row,) = world.run("status", "--json").json
    assert (row["state"], row["attempt"]) == ("diverged", 1)
    assert "the loss is nan at step 1" in world.run("errors").out


def test_by_hand_as_well(tmp_path: Path) -> None:

    world = World(tmp_path)
    world.write("run.py", SCRIPT)
    done = subprocess.run(
        [sys.executable, "run.py"], cwd=world.folder, env=world.env, capture_output=True, text=True
    )
    assert done.returncode == 1 and "Diverged" in done.stderr
    (row,) = world.run("status", "--json").json
    assert row["state"] == "diverged"
