"""Randomness of a training: drawn seeds, and deterministic algorithms."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import torch

from hostler import env
from hostler.train.config import Config
from hostler.train.ranks import TrainRanks

if TYPE_CHECKING:
    from hostler.sdk.run import Run

SEEDS = ("seed_model", "seed_training")


def make_repeatable(config: Config) -> None:
    if config.deterministic:
        env.make_cuda_repeatable()
        torch.backends.cudnn.benchmark = False
    torch.use_deterministic_algorithms(config.deterministic, warn_only=True)


def seeded(config: Config, run: Run, together: TrainRanks) -> Config:
    """Seeds that are not given are drawn once, for all ranks, and are the same after a resume."""
    for name in SEEDS:
        if getattr(config, name) is None:
            drawn = together.first(secrets.randbelow(2**31))
            config = config.but(**{name: run.memory.setdefault(name, drawn)})
            run.chose(**{name: getattr(config, name)})
    return config
