"""Scripts and trainings by hand log their use of CPU and memory, as a worker's runs do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hostler
import servers
from cli_world import World

BUSY = """
import time, hostler
with hostler.start({"lr": 0.1}) as run:
    for step in run.steps(20):
        until = time.process_time() + 0.1
        while time.process_time() < until:
            pass
        run.log(loss=1 / (step + 1))
"""
CONFIG = """dataset: npz/data.npz
model: linear
train_length: 150
batch_size: 4
"""


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def by_hand(world: World, *words: str) -> None:
    done = subprocess.run(
        [sys.executable, *words], cwd=world.folder, env=world.env, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_script_by_hand_logs_cpu_and_memory(world: World) -> None:
    world.write("busy.py", BUSY)
    by_hand(world, "busy.py")
    [row] = hostler.frame(str(world.store), system=True).to_dict("records")
    assert row["state"] == "done" and len(row["loss.curve"]) == 20
    assert 0 < row["system/cpu"] <= 2 and row["system/memory"] > 5e6 and row["system/processes"] >= 1
    assert not [name for name in hostler.frame(str(world.store)).columns if name.startswith("system/")]


def test_training_by_hand_logs_cpu_and_memory(world: World) -> None:
    servers.library("torch")
    chance = np.random.default_rng(0)
    x, y = chance.normal(size=(200, 4)).astype("float32"), chance.integers(0, 2, 200)
    np.savez(world.folder / "data.npz", x_train=x, y_train=y, x_test=x, y_test=y)
    world.write("one.yaml", CONFIG)
    by_hand(world, "-m", "hostler", "train", "one.yaml")
    [row] = hostler.frame(str(world.store), system=True).to_dict("records")
    assert row["state"] == "done" and row["system/memory"] > 5e7 and "system/cpu" in row
