"""The optimiser a config names, over two groups of parameters: those with `bias` in their name have a
weight decay of their own."""

from __future__ import annotations

from typing import Any

import torch

from hostler.errors import SpecError
from hostler.train import custom, momentum
from hostler.train.config import ADAM_LIKE, Config


def build(config: Config, model: torch.nn.Module) -> torch.optim.Optimizer:
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise SpecError(
            f"{config.model} has no parameters to train", hint="all of them are frozen, or it has none"
        )
    if custom.is_place(config.optim_alg):
        return _own(config, model)
    groups = _groups(config, model)
    if config.optim_alg == "lamb":
        return Lamb(groups, config.base_lr, momentum.betas(config.momentum), config.ada_eps)
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
    trained = [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
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
    return any(parameter.is_cuda for parameter in model.parameters())


class Lamb(torch.optim.Optimizer):
    """LAMB (You et al., 2020): Adam whose step is as long as the parameter, times the rate.

    Nothing in a step waits for the device, so that it can be recorded.
    """

    def __init__(self, params: Any, lr: float, betas: tuple[float, float], eps: float) -> None:
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": 0.0})

    @torch.no_grad()
    def step(self, closure: Any = None) -> None:  # type: ignore[override]
        for group in self.param_groups:
            for weights in group["params"]:
                if weights.grad is not None:
                    self._move(weights, group)

    def _move(self, weights: torch.Tensor, group: dict[str, Any]) -> None:
        state, (first, second) = self.state[weights], group["betas"]
        if not state:
            state["step"] = torch.zeros((), device=weights.device)
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(weights), torch.zeros_like(weights)
        state["step"] += 1
        mean, square = state["exp_avg"], state["exp_avg_sq"]
        mean.lerp_(weights.grad, 1 - first)
        square.mul_(second).addcmul_(weights.grad, weights.grad, value=1 - second)
        count = state["step"].double()
        size = (mean / (1 - first**count).float()).div_(
            (square / (1 - second**count).float()).sqrt_().add_(group["eps"])
        )
        size.add_(weights, alpha=group["weight_decay"])
        ratio = trust(weights.norm(), size.norm())
        weights.sub_(size.mul_(ratio * group["lr"]))


def trust(weights: torch.Tensor, step: torch.Tensor) -> torch.Tensor:
    """How far to go along a step of this length: as far as the weights are long, where both are anything."""
    return torch.where((weights > 0) & (step > 0), weights / step.clamp_min(1e-30), 1.0)
