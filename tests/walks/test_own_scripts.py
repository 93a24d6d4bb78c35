"""Scripts as people have them: swept, killed at a random moment, finished from their newest checkpoint."""

from __future__ import annotations

import random
import re
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest

import own_scripts
from cli_world import World
from script_walk import BOTH, PROCESS, VICTIMS, WORKER, first_process, send_kill, walk, worker_of

KINDS = list(own_scripts.PARSERS)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    yield world
    world.close()


@pytest.mark.parametrize("kind", KINDS)
def test_killed_script_of_any_parser_finishes_from_its_checkpoint(world: World, kind: str) -> None:
    walk(world, own_scripts.PARSERS[kind], VICTIMS[KINDS.index(kind) % 3], 0)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("victim", VICTIMS)
@pytest.mark.parametrize("kind", KINDS)
def test_script_killed_anywhere_finishes(world: World, kind: str, victim: str, seed: int) -> None:
    walk(world, own_scripts.PARSERS[kind], victim, seed)


HALF_SECOND = own_scripts.MODEL.replace("0.8 if amp", "0.5 if amp").replace(
    f"range(done + 1, {own_scripts.EPOCHS} + 1)", "range(done + 1, 21)"
)


@pytest.mark.parametrize("victim", [PROCESS, WORKER])
def test_kill_in_the_first_ten_seconds_keeps_progress(world: World, victim: str) -> None:
    """With the resting time of real runs, and a file that is replaced every half second."""
    rng, script = random.Random(victim), own_scripts.PARSERS["argparse"]
    in_place = 'with open(os.path.join(folder, "last.json"), "w") as file:'
    beside = HALF_SECOND.replace(in_place, in_place.replace("last.json", "last.json.new"))
    beside += '            os.replace(f"{folder}/last.json.new", f"{folder}/last.json")\n'
    world.write("train.py", own_scripts.ARGPARSE)
    world.write("model.py", beside)
    world.write("sweep.yaml", script.sweep + "parameters: {amp: [true], layers: {value: [3, 4]}}\n")
    world.env["HOSTLER_SETTLE"] = "2"
    command = world.start("sweep", "-y", "--wait", "sweep.yaml")
    _, pid = first_process(world, command)
    time.sleep(rng.uniform(6.0, 9.0))
    send_kill(worker_of(world) if victim == WORKER else pid)
    assert command.wait(240) == 0
    log = world.run("logs", "sweep").out
    [epoch] = re.findall(r"resumed from epoch (\d+)", log)
    assert int(epoch) >= 5, log


CELLS = (
    """
import os
from model import fit

def train(amp, layers):
    folder = os.environ["HOSTLER_CHECKPOINT_DIR"]
    last = os.path.join(folder, "last.json")
    fit(folder, amp, layers, last if os.path.exists(last) else None)
""",
    """
import hostler
parameters = {"amp": [True, False], "layers": {"value": [3, 4]}}
hostler.sweep(train, parameters, name="sweep", checkpoint={"every": 1}).wait(200)
""",
)


@pytest.mark.parametrize(
    "victim", [PROCESS, *(pytest.param(one, marks=pytest.mark.soak) for one in (WORKER, BOTH))]
)
def test_killed_function_of_a_notebook_finishes_from_its_checkpoint(world: World, victim: str) -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
    nbformat.write(notebook, world.folder / "lesson.ipynb")
    script = replace(own_scripts.PARSERS["argparse"], files={"model.py": own_scripts.MODEL}, lists=((3, 4),))
    walk(world, script, victim, 0, begin=("-c", "from nbclient.cli import main; main()", "lesson.ipynb"))
