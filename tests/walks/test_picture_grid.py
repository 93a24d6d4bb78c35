"""A grid of sub-grids on a folder of pictures: small networks of several kinds, each with keys of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas
import pytest

import hostler
import train_world
from cli_world import World

CONFIG = """
dataset: folder/pets
data_dir: {data}
data_splits_map: {{train: train, val: val, test: test}}
batch_size: 12
train_length: 3
device: cpu
num_workers: 0
seed_model: 1
seed_training: 2
log_interval_eval: 1
"""
SHORT = """
    - {model: tiny/lenet, base_lr: [0.02, 0.05]}
    - {model: tiny/resnet_8, base_lr: 0.05, augment: ["flip,crop_2", randaugment_1_5]}
    - {model: tiny/lenet, base_lr: 0.02}
"""
LONG = """
    - {model: tiny/lenet, base_lr: [0.02, 0.05]}
    - {model: [tiny/vgg_11, tiny/wrn_10_1_0.1], base_lr: 0.05, augment: ["flip,crop_2", randaugment_1_5]}
    - {model: timm/resnet10t, base_lr: 0.01, averaging: [ema_0.9, poly_0]}
    - {model: clip/tiny/two_towers, optim_alg: adam, base_lr: 0.003, image_size: 32}
"""


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path)
    train_world.folder(tmp_path / "data/pets", {"train": 16, "val": 4, "test": 4}, size=(32, 32))
    world.write("config.yaml", CONFIG.format(data=tmp_path / "data"))
    yield world
    world.close()


def swept(world: World, grid: str, timeout: float) -> pandas.DataFrame:
    world.write(
        "pets.yaml",
        "name: pets\ncommand: python -m hostler train config.yaml\n"
        f"metric: {{name: test/last/accuracy, goal: max}}\nparameters:\n  LIST net:{grid}",
    )
    answer = world.run("sweep", "-y", "--wait", "pets.yaml", timeout=timeout)
    assert answer.code == 0, answer.err + answer.out
    return hostler.frame(world.store, "pets")


@pytest.mark.timeout(900)
def test_list_grid_of_small_picture_models_ends_in_one_frame(world: World) -> None:
    table = swept(world, SHORT, 800)
    assert len(table) == 4  # the cell that is there twice is run once
    assert set(table["state"]) == {"done"}
    assert (table["augment"].map(len) > 0).sum() == 2
    assert (table["train/loss.curve"].map(len) == 3).all()
    assert table["val/last/accuracy"].notna().all()
    assert table["test/last/accuracy"].max() > 0.9


@pytest.mark.soak
def test_a_list_grid_over_the_libraries_ends_in_one_frame(world: World) -> None:
    train_world.needs("timm", "open_clip")
    table = swept(world, LONG, 1800)
    assert len(table) == 9
    assert set(table["state"]) == {"done"}
    assert table["test/last/accuracy"].min() > 0.3
