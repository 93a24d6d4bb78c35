"""The optimiser a config names, over two groups of parameters: biases and norms have a weight decay of
their own."""

from __future__ import annotations

from typing import Any

import torch

from hostler.errors import SpecError
from hostler.train.config import ADAM_LIKE, Config


def build(config: Config, model: torch.nn.Module) -> torch.optim.Optimizer:
    groups = _groups(config, model)
    fused = {"fused": True} if _on_cuda(model) else {}
    if config.optim_alg in ADAM_LIKE:
        kind = torch.optim.AdamW if config.optim_alg.endswith("w") else torch.optim.Adam
        return kind(
            groups,
            lr=config.base_lr,
            betas=betas_of(config.momentum),
            eps=config.ada_eps,
            amsgrad=config.optim_alg.startswith("amsgrad"),
            **fused,
        )
    momentum = momentum_of(config.momentum)
    return torch.optim.SGD(groups, lr=config.base_lr, momentum=momentum, nesterov=momentum > 0, **fused)


def set_rate(optimizer: torch.optim.Optimizer, rate: float) -> None:
    for group in optimizer.param_groups:
        if isinstance(group["lr"], torch.Tensor):
            group["lr"].fill_(rate)
        else:
            group["lr"] = rate


def _groups(config: Config, model: torch.nn.Module) -> list[dict[str, Any]]:
    trained = [(name, one) for name, one in model.named_parameters() if one.requires_grad]
    biases = [one for _, one in trained if one.ndim <= 1]
    weights = [one for _, one in trained if one.ndim > 1]
    groups = [
        {"params": weights, "weight_decay": config.weight_decay},
        {"params": biases, "weight_decay": config.weight_decay_biases},
    ]
    return [group for group in groups if group["params"]]


def _on_cuda(model: torch.nn.Module) -> bool:
    return any(one.is_cuda for one in model.parameters())


def betas_of(momentum: float | str) -> tuple[float, float]:
    if not isinstance(momentum, str):
        return float(momentum), 0.999
    try:
        first, second = (float(part) for part in momentum.split(","))
    except ValueError:
        raise SpecError(f"momentum {momentum!r} is not 'b1,b2'", hint="for example '0.9,0.999'") from None
    return first, second


def momentum_of(momentum: float | str) -> float:
    try:
        return float(momentum)
    except ValueError:
        raise SpecError(f"momentum {momentum!r} is not a number", hint="'b1,b2' is for Adam") from None
