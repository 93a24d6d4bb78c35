"""Models by the first word of their name; each family is imported when it is asked for."""

from __future__ import annotations

from importlib import import_module

import torch

from hostler.errors import MachineError, SpecError
from hostler.spec.nearest import did_you_mean
from hostler.train import custom, memory
from hostler.train.config import Config
from hostler.train.data.split import TEXT, Data
from hostler.train.models import head, weights

# first word → module with build(rest, config, data, outputs) -> Module
FAMILIES = {
    "linear": "linear",
    "tiny": "tiny",
    "timm": "timm_model",
    "hf": "hf_model",
    "clip": "clip_model",
}
FETCHING = ("timm", "hf", "clip")  # these see to `model_pretrained: true` themselves
READING = ("clip",)  # and these to a path: it is of more than what is trained


def is_own(name: str) -> bool:
    """Whether the trainer has the model itself, and so knows what it does."""
    word = name.partition("/")[0]
    return word in FAMILIES and word not in FETCHING


def build(config: Config, data: Data) -> torch.nn.Module:
    """The model with its head begun as asked and its weights loaded, on the CPU."""
    word, _, rest = config.model.partition("/")
    if custom.is_place(config.model):
        model = custom.load(config.model, config=config, data=data)
        word = ""
    else:
        model = _known(word, rest, config, data)
    if not isinstance(model, torch.nn.Module):
        raise SpecError(f"model {config.model} gave {type(model).__name__}", hint="return a torch.nn.Module")
    if config.model_pretrained is True and word not in FETCHING:
        raise SpecError(f"{config.model} has no pretrained weights", hint="model_pretrained: PATH of some")
    if isinstance(config.model_pretrained, str) and word not in READING:
        weights.load(model, config.model_pretrained)
    if config.model_head_init:
        head.begin(model, config.model_head_init)
    return model


def _known(word: str, rest: str, config: Config, data: Data) -> object:
    if word not in FAMILIES:
        known = ", ".join([*(f"{one}/…" for one in FAMILIES), "file.py:name"])
        raise SpecError(f"no model named {config.model!r}", did_you_mean(word, FAMILIES, f"known: {known}"))
    if data.kind == TEXT and word != "hf":
        raise SpecError(f"{config.model} takes numbers, but {config.dataset} holds texts", hint="model: hf/…")
    if config.model_options and word not in FETCHING:
        raise SpecError(f"{config.model} has no model_options", hint=f"models of {', '.join(FETCHING)} have")
    outputs = config.model_output_dim or max(data.n_classes, 1)
    family = import_module(f"hostler.train.models.{FAMILIES[word]}")
    try:
        made: object = family.build(rest, config, data, outputs)
    except RuntimeError as error:
        if not memory.ran_out(error):
            raise
        raise MachineError(
            f"{config.model} with {outputs} outputs does not fit in this machine's memory"
        ) from None
    return made
