"""Searches that learn, from file to best run, with real workers and no server."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cli_world import World, eventually

TRAIN = """
import argparse, json
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, required=True)
parser.add_argument("--opt", required=True)
parser.add_argument("--momentum", type=float, default=0.0)
given = parser.parse_args()
print(json.dumps({"step": 1, "acc": 1 - abs(given.lr - 0.1) + given.momentum}), flush=True)
"""
FILE = """
name: t
command: python train.py
metric: {name: acc, goal: max}
method: tpe
parameters:
  lr: {min: 1e-5, max: 1.0, log: true}
  LIST opt:
    - {opt: sgd, momentum: {min: 0.0, max: 0.9}}
    - {opt: adam}
budget: {runs: 6}
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    world.write("train.py", TRAIN)
    world.write("tpe.yaml", FILE)
    yield world
    world.close()


def rows(world: World) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = world.run("status", "t", "--json").json
    return found


def test_search_goes_from_plan_to_best_and_a_larger_budget(world: World) -> None:
    world.write("tpe.yaml", FILE.replace("runs: 6", "runs: 4"))
    assert world.run("plan", "tpe.yaml", "--json").json["runs"] == 4
    assert not world.store.exists()
    answer = world.run("sweep", "-y", "--wait", "tpe.yaml", timeout=120)
    assert answer.code == 0, answer.err
    first = rows(world)
    assert [row["state"] for row in first] == ["done"] * 4
    for row in first:
        assert ("momentum" in row["params"]) == (row["params"]["opt"] == "sgd")
    best = world.run("best", "t", "--json").json[0]
    assert best["value"] == max(row["metrics"]["acc"] for row in first)
    world.write("tpe.yaml", FILE)
    answer = world.run("sweep", "-y", "--wait", "tpe.yaml", timeout=120)
    assert answer.code == 0, answer.err
    again = rows(world)
    assert [row["id"] for row in again[:4]] == [row["id"] for row in first]
    assert [row["state"] for row in again] == ["done"] * 6
    assert len(list((world.store / "sweeps" / "t" / "journal").iterdir())) == 6


def test_missing_sampler_is_one_line_before_anything_starts(world: World) -> None:
    (world.folder / "without").mkdir()
    world.write("without/sitecustomize.py", "import sys\nsys.modules['optuna'] = None\n")
    path = f"{world.folder / 'without'}{os.pathsep}{world.env.get('PYTHONPATH', '')}"
    for words in (["plan", "tpe.yaml"], ["sweep", "-y", "tpe.yaml"]):
        answer = world.run(*words, PYTHONPATH=path)
        assert answer.code == 1
        assert "method tpe needs optuna, which is not installed here" in answer.err
        assert "hostler[search]" in answer.err
    assert not world.store.exists()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("metric: {name: acc, goal: max}", "", "tpe.yaml:5: method tpe needs a metric"),
        ("budget: {runs: 6}", "", "tpe.yaml:5: method tpe needs a budget"),
        ("budget:", "prune: ahsa\nbudget:", "did you mean 'asha'"),
        ("budget:", "prune: {method: asha, mx: 3}\nbudget:", "tpe.yaml:11: prune: asha has no setting 'mx'"),
        ("method: tpe", "method: tpee", "tpe"),
    ],
)
def test_what_cannot_be_is_said_with_its_line(world: World, old: str, new: str, said: str) -> None:
    world.write("tpe.yaml", FILE.replace(old, new))
    answer = world.run("sweep", "-y", "tpe.yaml")
    assert answer.code == 2
    assert said in answer.err
    assert not world.store.exists()


def test_unlogged_metric_ends_the_wait_and_the_right_name_continues(world: World) -> None:
    world.write("tpe.yaml", FILE.replace("name: acc", "name: accuracy"))
    answer = world.run("sweep", "-y", "--wait", "tpe.yaml", timeout=120)
    assert answer.code == 1
    assert "none has logged accuracy (logged: acc)" in answer.err and "another metric" in answer.err
    world.write("tpe.yaml", FILE)
    answer = world.run("sweep", "-y", "--wait", "tpe.yaml", timeout=120)
    assert answer.code == 0, answer.err
    assert [row["state"] for row in rows(world)] == ["done"] * 6


GRID = """
name: t
command: python train.py
metric: {name: acc, goal: max}
parameters: {opt: adam, lr: [0.1, 0.2]}
"""


def overwrite(world: World, file: str, name: str = "t", code: int = 0) -> str:
    """Puts another in its place; what it says."""
    world.write("tpe.yaml", file)
    answer = world.answered("sweep", "-o", "--wait", "tpe.yaml", given=f"{name}\n", timeout=100)
    assert answer.code == code, answer.err
    return answer.err


def test_minus_o_replaces_a_search_by_another_or_a_grid(world: World) -> None:
    small = FILE.replace("runs: 6", "runs: 3")
    world.write("tpe.yaml", small)
    assert world.run("sweep", "-y", "--wait", "tpe.yaml", timeout=120).code == 0
    first = [row["id"] for row in rows(world)]
    assert "nothing was submitted" in overwrite(world, small, name="other", code=1), "another name is no yes"
    assert [row["id"] for row in rows(world)] == first

    narrow = FILE.replace("max: 1.0", "max: 0.5").replace("runs: 6", "runs: 2")
    overwrite(world, narrow)
    second = rows(world)
    assert [row["state"] for row in second] == ["done"] * 2, "the budget is the new one's"
    assert [row["index"] for row in second] == [3, 4], "an index is given out once"
    assert all(row["params"]["lr"] <= 0.5 for row in second)
    assert len(list((world.store / "sweeps" / "t" / "journal").iterdir())) == 5

    overwrite(world, GRID)
    assert [(row["index"], row["state"]) for row in rows(world)] == [(5, "done"), (6, "done")]

    overwrite(world, small)
    last = rows(world)
    assert [row["index"] for row in last] == [7, 8, 9]
    assert [row["state"] for row in last] == ["done"] * 3
    best = world.run("best", "t", "--json").json[0]
    assert best["run"] in {row["id"] for row in last}, "what lies in the trash is not ranked"

    assert world.run("rm", "--restore", "t/0").code == 0
    back = rows(world)
    assert (back[0]["id"], back[0]["state"]) == (first[0], "done"), "what was put away can be had back"


def test_minus_o_leaves_a_search_with_live_runs_alone(world: World) -> None:
    world.write("train.py", TRAIN + "import time\ntime.sleep(600)\n")
    assert world.run("sweep", "-y", "tpe.yaml").code == 0
    eventually(lambda: world.in_state("running") > 0)
    assert "of its runs are running" in overwrite(world, GRID, code=2)
    assert any(row["state"] == "running" for row in rows(world))
    assert "halted" not in world.run("status", "t").out
