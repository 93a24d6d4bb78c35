"""A sweep of the trainer whose runs are trained together: done, diverged, stopped early, pruned and stopped
by a person, each with the numbers that it has alone. A history of the large one is judged by
tests/history/checker.py."""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "history"))

from recorder import Recorder, sweep_as_it_is

import hostler
from cli_world import World, eventually
from hostler.records.rows import Row, rows
from hostler.records.run import control, run_details
from hostler.records.sweep import sweeps
from hostler.store import open_store

NET = """\
import os, time

import torch

CALLS = [0]


class Net(torch.nn.Module):
    def __init__(self, config, data):
        super().__init__()
        self.layer = torch.nn.Linear(64, data.n_classes)

    def forward(self, x):
        CALLS[0] += 1
        if not os.path.exists(os.environ["GO_ON"]):
            time.sleep(0.1 if CALLS[0] < 100 else 1.0)  # there is time to leave
        return self.layer(x.flatten(1))
"""
CONFIG = {
    "dataset": "sklearn/digits",
    "model": "my.py:Net",
    "device": "cpu",
    "batch_size": 200,
    "train_length": 40,
    "momentum": 0.0,
    "seed_model": 1,
    "seed_training": 1,
    "best_checkpoint_metric": "test/last/loss",
    "best_checkpoint_goal": "max",  # patience, where there is some, runs out for whoever becomes better
}
SWEEP = """\
metric: {name: test/last/loss, goal: min}
prune: {method: patience, patience: 5}
parameters:
  LIST_OF_RUNS:
    - base_lr: [0.01, 0.02, 0.05]
    - base_lr: [1.0e+9]
    - base_lr: [0.03]
      early_stopping_patience: [2]
    - base_lr: [1.0e-12]
"""
DONE, ASKED, DIVERGED, EARLY, PRUNED = 0, 2, 3, 4, 5
COMPARED = ("test/last/loss", "train/loss")
TOLERANCE = 1e-5  # of a loss, to its size, after 320 steps


def project(tmp_path: Path) -> World:
    world = World(tmp_path)
    world.write("my.py", NET)
    world.write("config.yaml", "".join(f"{name}: {value}\n" for name, value in CONFIG.items()))
    world.write("sweep.yaml", SWEEP)
    mark = world.folder.parent / "go-on"
    text = (
        f"name: p\ncommand: python -m hostler train config.yaml\nenv: {{GO_ON: {mark}, OMP_NUM_THREADS: 1}}\n"
    )
    world.write("hostler.yaml", text)
    return world


def alone(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **given: Any
) -> list[dict[str, float]]:
    """The rows of a training by itself."""
    from hostler.errors import Diverged
    from hostler.trainer import experiment_generator

    folder = folder_of(tmp_path, given["base_lr"])
    folder.mkdir()
    (folder / "my.py").write_text(NET)
    monkeypatch.chdir(folder)
    monkeypatch.setenv("GO_ON", str(folder))
    found: list[dict[str, float]] = []
    try:
        for epoch in experiment_generator({**CONFIG, **given}):
            found.append(dict(epoch))
    except Diverged:
        pass
    return found


def folder_of(tmp_path: Path, rate: float) -> Path:
    """The project of a training alone, with its own store."""
    return tmp_path / f"alone-{rate}"


def violations(world: World, history: Recorder, tmp_path: Path, found: list[Row]) -> list[str]:
    """What the checker says of a sweep, each of whose runs has been trained alone, too."""
    for row in found:
        url = str(folder_of(tmp_path, row.params["base_lr"]) / ".hostler")
        [name] = sweeps.names(open_store(url))
        [wanted] = sweep_as_it_is(url, name, world.env, metrics=COMPARED, judged="^$")
        assert all(wanted["curves"].values())
        history.expect({row.id: {**wanted, "result": {}, "near": TOLERANCE}})
    cache, tmp = Path(world.env["HOSTLER_CACHE"]), Path(world.env["TMPDIR"])
    return history.close([row.id for row in found], cache, tmp)


def of(world: World) -> list[Row]:
    return rows(open_store(str(world.store)), ["sweep"])


def close_to(one: float, other: float) -> bool:
    return math.isclose(one, other, rel_tol=TOLERANCE)


def same_curves(world: World, row: Row, there: list[dict[str, float]]) -> int:
    """How many epochs of a run were compared with those of the training alone."""
    found = hostler.curves(str(world.store), "sweep", run=row.id, metric=list(COMPARED))
    for name, curve in found.groupby("metric"):
        values = list(curve["value"])
        assert all(close_to(a, b[str(name)]) for a, b in zip(values, there, strict=False)), (row.name, name)
    return len(found) // 2


@pytest.mark.timeout(600)
def test_each_grouped_run_ends_its_own_way_with_same_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = project(tmp_path)
    try:
        plan = world.run("plan", "sweep.yaml")
        assert "trained together on one device: 6 of 6 runs" in plan.out
        begun = world.start("sweep", "-y", "--wait", "sweep.yaml")
        store = open_store(str(world.store))
        eventually(_reached(world, ASKED), 240)
        shown = world.run("show", f"sweep/{ASKED}")
        assert "trained together with 5 others" in shown.out
        assert "trained together with 5 others" in world.run("status").out
        control.stop(store, of(world)[ASKED].key)
        eventually(lambda: [of(world)[n].state for n in (ASKED, PRUNED)] == ["stopped", "pruned"], 240)
        (tmp_path / "go-on").touch()
        _, said = begun.communicate(timeout=240)
        found = of(world)
        assert [row.state for row in found] == ["done", "done", "stopped", "diverged", "done", "pruned"], said
        assert [row.together for row in found] == [5] * 6 and [row.attempt for row in found] == [1] * 6
        ran_on = [run_details.read(store, row.key).environment or {} for row in found]
        assert all(one["packages"] for one in ran_on) and len({str(one["command"]) for one in ran_on}) == 6
        monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "reader"))
        lengths = {
            row.index: same_curves(world, row, alone(world, tmp_path, monkeypatch, **row.params))
            for row in found
            if row.index in (DONE, EARLY, PRUNED)
        }
        assert [lengths[DONE]] == [40] and lengths[EARLY] == 3
        assert 0 < lengths[PRUNED] < 40
        assert len(alone(world, tmp_path, monkeypatch, **found[DIVERGED].params)) == 0
        assert "the loss is" in str(found[DIVERGED].failure)
        resumed = world.run("resume", f"sweep/{ASKED}", timeout=240)
        eventually(lambda: of(world)[ASKED].state == "done", 240)
        whole = alone(world, tmp_path, monkeypatch, **found[ASKED].params)
        assert same_curves(world, of(world)[ASKED], whole) == 40, resumed.err
    finally:
        world.close()


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_108_linear_models_are_trained_together_and_each_as_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HOSTLER_DOSE=0.03 takes a part of these."""
    world, runtime = project(tmp_path), tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    world.env["XDG_RUNTIME_DIR"] = str(runtime)  # the machine's notes of its workers stay
    (tmp_path / "go-on").touch()
    count = round(max(3, 108 * float(os.environ.get("HOSTLER_DOSE", "1"))))
    rates = [0.001 * (n + 1) for n in range(count)]
    world.write("sweep.yaml", f"metric: test/last/loss\ngoal: min\nparameters: {{base_lr: {rates}}}\n")
    try:
        with Recorder(str(world.store), tmp_path / "evidence", "sweep", world.env) as history:
            answer = world.run("sweep", "-y", "--wait", "sweep.yaml", timeout=1700)
        found = of(world)
        assert answer.code == 0 and [row.state for row in found] == ["done"] * count, answer.err
        assert [row.together for row in found] == [count - 1] * count
        monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "reader"))
        for row in found:
            assert same_curves(world, row, alone(world, tmp_path, monkeypatch, **row.params)) == 40
        assert violations(world, history, tmp_path, found) == []
    finally:
        world.close()


def _reached(world: World, index: int) -> Callable[[], bool]:
    def reached() -> bool:
        found = of(world) if world.store.exists() else []
        return len(found) > index and (found[index].step or 0) > 0 and found[index].together > 0

    return reached
