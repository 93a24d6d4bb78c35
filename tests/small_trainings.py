"""Small trainings in this process, each in a folder of its own."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import pytest
import torch

from hostler.train.epoch import Epoch
from hostler.trainer import experiment_generator

SMALL = {
    "dataset": "synthetic/6_3_48", "model": "linear", "batch_size": 8, "base_lr": 0.1, "train_length": 2,
    "seed_model": 1, "seed_training": 2, "device": "cpu", "output_dir": "out", "momentum": 0.0,
}  # fmt: skip


class Place:
    """The current folder, with a store in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def train(self, **config: Any) -> list[Epoch]:
        return list(experiment_generator({**SMALL, **config}))

    def weights(self, name: str = "model.safetensors") -> dict[str, torch.Tensor]:
        from safetensors.torch import load_file

        return dict(load_file(self.out / name))

    def rows(self) -> list[dict[str, str]]:
        with open(self.out / "stats.csv") as file:
            return list(csv.DictReader(file))

    def log(self) -> str:
        return (self.out / "training.log").read_text()


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    torch.set_num_threads(1)  # small things, on a machine that may be busy
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOSTLER_CACHE", str(tmp_path / "cache"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    return Place(tmp_path)


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    """To the bit."""
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)
