"""The optimiser a config names, over two groups of parameters: those with `bias` in their name have a
weight decay of their own."""

from __future__ import annotations

from typing import Any

import torch

from hostler.errors import SpecError
from hostler.train import custom, momentum
from hostler.train.config import ADAM_LIKE, Config


def build(config: Config, model: torch.nn.Module) -> torch.optim.Optimizer:
    if not any(one.requires_grad for one in model.parameters()):
        raise SpecError(
            f"{config.model} has no parameters to train", hint="all of them are frozen, or it has none"
        )
    if custom.is_place(config.optim_alg):
        return _own(config, model)
    groups = _groups(config, model)
    fused = {"fused": True} if _on_cuda(model) else {}
    if config.optim_alg in ADAM_LIKE:
        kind = torch.optim.AdamW if config.optim_alg.endswith("w") else torch.optim.Adam
        return kind(
            groups,
            lr=config.base_lr,
            betas=momentum.betas(config.momentum),
            eps=config.ada_eps,
            amsgrad=config.optim_alg.startswith("amsgrad"),
            **fused,
        )
    found = momentum.one(config.momentum)
    return torch.optim.SGD(groups, lr=config.base_lr, momentum=found, nesterov=found > 0, **fused)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def _groups(config: Config, model: torch.nn.Module) -> list[dict[str, Any]]:
    trained = [(name, one) for name, one in model.named_parameters() if one.requires_grad]
    biases = [one for name, one in trained if "bias" in name]
    weights = [one for name, one in trained if "bias" not in name]
    groups = [
        {"params": weights, "weight_decay": config.weight_decay},
        {"params": biases, "weight_decay": config.weight_decay_biases},
    ]
    return [group for group in groups if group["params"]]


def _own(config: Config, model: torch.nn.Module) -> torch.optim.Optimizer:
    """A user's: a function of config and model, or a class, which gets the groups and the rate."""
    found = custom.find(config.optim_alg)
    if isinstance(found, type) and issubclass(found, torch.optim.Optimizer):
        make: Any = found  # each class has arguments of its own
        made = make(_groups(config, model), lr=config.base_lr)
    else:
        custom.check_call(config.optim_alg, found, "config", "model")
        made = found(config, model)
    if not isinstance(made, torch.optim.Optimizer):
        raise SpecError(
            f"optim_alg {config.optim_alg} gave {type(made).__name__}", hint="return a torch.optim.Optimizer"
        )
    return made


def _on_cuda(model: torch.nn.Module) -> bool:
    return any(one.is_cuda for one in model.parameters())
