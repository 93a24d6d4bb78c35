"""The last layer of a model: found, and begun anew as zeros or at random."""

from __future__ import annotations

import torch

from hostler.errors import SpecError


def of(model: torch.nn.Module) -> torch.nn.Linear | torch.nn.Conv2d:
    return _found(model)[1]


def names(model: torch.nn.Module) -> set[str]:
    """Names of the head's weights; empty for a model without one."""
    try:
        name, layer = _found(model)
    except SpecError:
        return set()
    return {f"{name}.{one}" for one, _ in layer.named_parameters(recurse=False)}


def begin(model: torch.nn.Module, how: str) -> None:
    name, layer = _found(model)
    mine = set(map(id, layer.parameters()))
    shared = [
        other
        for other, parameter in model.named_parameters(remove_duplicate=False)
        if id(parameter) in mine and not other.startswith(f"{name}.")
    ]
    if shared:
        raise SpecError(f"model_head_init: the head's weights are those of {shared[0]}", hint="leave it out")
    if how == "rand":
        layer.reset_parameters()
        return
    with torch.no_grad():
        for one in layer.parameters():
            one.zero_()


def _found(model: torch.nn.Module) -> tuple[str, torch.nn.Linear | torch.nn.Conv2d]:
    """The classifier that the model names, else its last linear layer."""
    asked = getattr(model, "get_classifier", None)
    own = asked() if asked is not None else None
    for name, one in model.named_modules():
        if one is own and isinstance(one, (torch.nn.Linear, torch.nn.Conv2d)):
            return name, one
    layers = [(name, one) for name, one in model.named_modules() if isinstance(one, torch.nn.Linear)]
    if not layers:
        raise SpecError("model_head_init: the model has no linear layer")
    return layers[-1]
