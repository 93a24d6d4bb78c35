"""The last linear layer of a model: found, and begun anew as zeros or at random."""

from __future__ import annotations

import torch

from hostler.errors import SpecError


def of(model: torch.nn.Module) -> torch.nn.Linear:
    found = [one for one in model.modules() if isinstance(one, torch.nn.Linear)]
    if not found:
        raise SpecError("model_head_init: the model has no linear layer")
    return found[-1]


def begin(model: torch.nn.Module, how: str) -> None:
    layer = of(model)
    if how == "rand":
        layer.reset_parameters()
        return
    with torch.no_grad():
        layer.weight.zero_()
        if layer.bias is not None:
            layer.bias.zero_()
