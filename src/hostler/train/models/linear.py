"""`linear` and `linear/no_bias`: one matrix over the flattened input."""

from __future__ import annotations

import math

import torch

from hostler.errors import SpecError
from hostler.train.config import Config
from hostler.train.data.split import Data

KINDS = {"": True, "bias": True, "no_bias": False}


def build(rest: str, config: Config, data: Data, outputs: int) -> torch.nn.Module:
    if rest not in KINDS:
        raise SpecError(f"no model named linear/{rest}", hint="linear, linear/no_bias")
    width = math.prod(config.model_input_shape or data.input_shape)
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(width, outputs, bias=KINDS[rest]))
