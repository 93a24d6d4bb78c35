"""Randomness of a training: drawn seeds, and deterministic algorithms."""

from __future__ import annotations

import secrets
import sys
from typing import TYPE_CHECKING

import torch

from hostler import env
from hostler.train.config import Config
from hostler.train.ranks import TrainRanks

if TYPE_CHECKING:
    from hostler.sdk.run import Run

COMPILER = "torch._inductor.config"
SEEDS = ("seed_model", "seed_training")


def make_repeatable(config: Config) -> None:
    if config.deterministic:
        env.make_cuda_repeatable()
        torch.backends.cudnn.benchmark = False
    _use_deterministic(config.deterministic)


def _use_deterministic(wanted: bool) -> None:
    """`torch.use_deterministic_algorithms`, which imports torch's whole compiler to set one flag of it: five
    seconds for a training that compiles nothing. A compiler that comes later reads that flag from its
    variable."""
    setter = getattr(torch._C, "_set_deterministic_algorithms", None)
    if setter is None or COMPILER in sys.modules:
        torch.use_deterministic_algorithms(wanted, warn_only=True)
        return
    env.make_compiler_repeatable(wanted)
    setter(wanted, warn_only=True)


def seeded(config: Config, run: Run, together: TrainRanks) -> Config:
    """Seeds that are not given are drawn once, for all ranks, and are the same after a resume."""
    for name in SEEDS:
        if getattr(config, name) is None:
            drawn = together.first(secrets.randbelow(2**31))
            config = config.but(**{name: run.memory.setdefault(name, drawn)})
            run.chose(**{name: getattr(config, name)})
    return config
