"""A bound on how many run at once, and workers that are killed: it holds, and nothing waits for ever."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from cli_world import World, eventually

TRAIN = """
import os, sys, time
from pathlib import Path

marks, me = Path(os.environ["MARKS"]), os.environ["HOSTLER_RUN"] + "-" + os.environ["HOSTLER_ATTEMPT"]
Path(marks, me).write_text(str(time.time()))
for _ in range(10):
    time.sleep(0.1)
    with open(Path(marks, me), "a") as file:
        file.write(f" {time.time()}")
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    world.write("train.py", TRAIN)
    world.write("hostler.yaml", "fleets: {a: {backend: local, workers: 3, slots: 1}}\n")
    file = {"name": "s", "command": "python train.py", "parallel": 1, "parameters": {"i": [1, 2, 3, 4]}}
    world.write("sweep.json", json.dumps(file))
    world.env["HOSTLER_WAIT_MAX"] = "0.3"  # under a quarter of the lease, as usual
    world.env["MARKS"] = str(tmp_path / "marks")
    (tmp_path / "marks").mkdir()
    yield world
    world.close()


def spans(world: World) -> list[tuple[float, float]]:
    """When every process that was started gave its first and its last sign."""
    found = [
        [float(word) for word in path.read_text().split()] for path in Path(world.env["MARKS"]).iterdir()
    ]
    return sorted((times[0], times[-1]) for times in found)


def test_the_turn_of_a_killed_worker_is_its_successor_s(world: World) -> None:
    assert world.run("sweep", "-y", "--on", "a", "sweep.json").code == 0
    eventually(lambda: len(spans(world)) >= 1)
    world.kill_workers()
    assert world.run("sweep", "-y", "--on", "a", "sweep.json").code == 0
    assert world.run("wait", "s", timeout=120).code == 0
    times = spans(world)
    assert len(times) >= 5  # four runs, and the one that was killed once more
    assert all(before[1] <= after[0] for before, after in pairwise(times))
