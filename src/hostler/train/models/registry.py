"""Models by the first word of their name; each family is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

import torch

from hostler.errors import SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train import custom
from hostler.train.config import Config
from hostler.train.data.split import Data
from hostler.train.models import head, weights

# first word → module with build(rest, config, data, outputs) -> Module
FAMILIES = {
    "linear": "linear",
    "tiny": "tiny",
}


def build(config: Config, data: Data) -> torch.nn.Module:
    """The model with its head begun as asked and its weights loaded, on the CPU."""
    outputs = config.model_output_dim or max(data.n_classes, 1)
    if custom.is_place(config.model):
        model = custom.load(config.model, config, data)
    else:
        word, _, rest = config.model.partition("/")
        if word not in FAMILIES:
            known = ", ".join([*(f"{one}/…" for one in FAMILIES), "file.py:name"])
            raise SpecError(
                f"there is no model {config.model!r}", did_you_mean(word, FAMILIES, f"known: {known}")
            )
        model = import_module(f"hostler.train.models.{FAMILIES[word]}").build(rest, config, data, outputs)
    if not isinstance(model, torch.nn.Module):
        raise SpecError(f"model {config.model} gave {type(model).__name__}", hint="return a torch.nn.Module")
    if config.model_pretrained is True:
        raise SpecError(
            f"there are no pretrained weights of {config.model}", hint="model_pretrained: PATH of some"
        )
    if isinstance(config.model_pretrained, str):
        weights.load(model, config.model_pretrained)
    if config.model_head_init:
        head.begin(model, config.model_head_init)
    return model
