"""Small data of every kind for the trainer's tests, made on the spot, and libraries that may be missing."""

from __future__ import annotations

import random
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from PIL import Image

import servers
from hostler.train.config import Config
from hostler.train.configfile import make
from hostler.train.parts import TrainingParts, assemble
from hostler.train.ranks import TrainRanks

COLOURS = {"cat": (220, 40, 40), "dog": (40, 220, 40), "fish": (40, 40, 220)}
CPU = torch.device("cpu")


def needs(*modules: str) -> None:
    for name in modules:
        if find_spec(name) is None:
            servers.missing(f"{name} is not installed")


def config(**given: Any) -> Config:
    small = {"seed_model": 1, "seed_training": 2, "device": "cpu", "batch_size": 4, "base_lr": 0.05}
    return make({**small, "train_length": 1, **given})


def parts(**given: Any) -> TrainingParts:
    torch.set_num_threads(1)  # the models are small, and the tests are several
    return assemble(config(**given), CPU, TrainRanks())


def losses(made: TrainingParts, steps: int = 8) -> list[float]:
    """Of so many steps over the first batch."""
    x, y = made.batch(0)
    return [float(made.step(x, y, made.config.base_lr)[0]) for _ in range(steps)]


def picture(name: str, chance: random.Random, size: tuple[int, int] = (32, 32)) -> Image.Image:
    colour = tuple(max(0, min(255, one + chance.randint(-30, 30))) for one in COLOURS[name])
    made = Image.new("RGB", size, colour)
    made.putpixel((chance.randrange(size[0]), chance.randrange(size[1])), (255, 255, 255))
    return made


def folder(root: Path, splits: Mapping[str, int], size: tuple[int, int] = (32, 32), end: str = "png") -> Path:
    """So many pictures of each class and split."""
    chance = random.Random(1)
    for split, count in splits.items():
        for name in COLOURS:
            (root / split / name).mkdir(parents=True)
            for place in range(count):
                picture(name, chance, size).save(root / split / name / f"{place}.{end}")
    return root
