"""The weights that the trainer and a Manager keep of their best epoch are those that the run is ranked by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

import hostler
from cli_world import World

TRAINER_FILE = """
name: s
command: hostler train dataset=synthetic/8_4_64 model=linear num_workers=0 save_freq=1 train_length=4
  save_best_checkpoint=true best_checkpoint_metric=train/loss best_checkpoint_goal=max
metric: {name: train/loss, goal: max}
parameters:
  base_lr: [0.01, 0.02]
"""
MANAGER = """
import torch
from hostler.manager import Manager

def train(manager):
    model = torch.nn.Linear(1, 1, bias=False)
    manager.set_compare_goal("acc", "max")
    begin = manager.start_epoch()
    manager.track_model(model)
    for epoch in range(begin, 3):
        manager.add_progress("epochs", epoch)
        value = {"peak": [0.2, 0.95, 0.1], "rise": [0.3, 0.6, 0.7]}[manager.get_hyparams()["shape"]][epoch]
        with torch.no_grad():
            model.weight.fill_(value)
        manager.add_progress("acc", value)
    manager.save_progress()
    manager.finished()

Manager.create_manager(torch).hyparam_search(train)
"""
MANAGER_FILE = """
name: s
command: python train.py
style: none
metric: {name: acc, goal: max}
parameters:
  shape: [peak, rise]
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    world.env["OMP_NUM_THREADS"] = "1"
    yield world
    world.close()


def best_of(world: World, file: str) -> dict[str, Any]:
    """The best run of the sweep, brought into the folder `brought` with all its files."""
    world.write("train.py", MANAGER)
    world.write("sweep.yaml", file)
    swept = world.run("sweep", "-y", "--wait", "sweep.yaml", timeout=250)
    assert swept.code == 0, swept.err
    [best] = world.run("best", "s", "--json").json
    assert (best["of"], best["weights"]["kept"]) == ("best", True)
    brought = world.run("pull", best["name"], "--to", "brought", "--json")
    assert brought.code == 0, brought.err
    weights = brought.json["weights"]
    assert (weights["value"], weights["step"]) == (best["value"], best["step"])
    return best


def tensors(folder: Path, name: str) -> dict[str, torch.Tensor]:
    """The tensors of one tracked object, in the newest state of a folder that the library saved."""
    [*_, newest] = sorted(folder.rglob("step-*/*.safetensors"))
    return {
        key.removeprefix(f"{name}."): tensor
        for key, tensor in load_file(newest).items()
        if key.startswith(f"{name}.")
    }


@pytest.mark.timeout(280)
def test_trainer_run_ranks_by_epoch_of_its_best_checkpoint(world: World) -> None:
    """The loss falls, so its highest value, which is asked for, is that of the first epoch."""
    best = best_of(world, TRAINER_FILE)
    curve = hostler.curves(str(world.store), "s", metric="train/loss")
    assert best["value"] == curve["value"].max() == curve[curve["run"] == best["run"]]["value"].iloc[0]
    pulled = world.folder / "brought"
    [kept] = pulled.rglob("checkpoints/best.safetensors")
    first = load_file(kept.with_name("epoch_00001.safetensors"))
    last = load_file(kept.with_name("epoch_00004.safetensors"))
    folder = pulled / "checkpoint" / best["weights"]["folder"]
    for found in (load_file(kept), tensors(folder, "model.state")):
        assert all(torch.equal(found[name], first[name]) for name in first)
        assert not all(torch.equal(found[name], last[name]) for name in last)


@pytest.mark.timeout(280)
def test_manager_run_ranks_by_epoch_of_its_best_weights(world: World) -> None:
    best = best_of(world, MANAGER_FILE)
    assert (best["params"], best["value"], best["step"]) == ({"shape": "peak"}, 0.95, 1)
    found = tensors(world.folder / "brought" / "checkpoint", "manager")
    assert {name: round(tensor.item(), 6) for name, tensor in found.items()} == {"best_weights.weight": 0.95}
    said = world.run("pull", best["name"], "--to", "again").err
    assert "`manager.best_weights` of the checkpoint" in said
