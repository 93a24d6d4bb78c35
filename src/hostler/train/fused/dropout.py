"""Dropout in which each member has numbers of its own: a pure function of its seed, the step and the layer.

They are others than torch draws for a training alone, and the same whoever shares the group.
"""

from __future__ import annotations

import copy

import torch
from torch import nn

from hostler.train.data import chance

PLAIN = (nn.Dropout, nn.Dropout1d, nn.Dropout2d, nn.Dropout3d)


class MemberDropout(nn.Module):
    """`key` comes with the weights of a step. `channels`: whole channels are dropped."""

    key: torch.Tensor

    def __init__(self, share: float, *, channels: bool) -> None:
        super().__init__()
        self._share, self._channels = share, channels
        self.register_buffer("key", torch.zeros((), dtype=torch.long), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not self.training:
            return x
        shape = (*x.shape[:2], *[1] * (x.ndim - 2)) if self._channels else tuple(x.shape)
        places = torch.arange(torch.Size(shape).numel(), device=x.device).view(shape)
        kept = chance.uniform(self.key, places) >= self._share
        return torch.where(kept, x * (1 / (1 - self._share) if self._share < 1 else 0.0), 0.0).to(x.dtype)


def swapped(model: nn.Module) -> nn.Module:
    """The model with such a dropout in the place of each of torch's; itself, if it has none."""
    if not any(isinstance(module, PLAIN) and module.p > 0 for module in model.modules()):
        return model
    model = copy.deepcopy(model)
    for name, one in [*model.named_modules()]:
        if type(one) in PLAIN and one.p > 0:
            parent = model.get_submodule(name.rpartition(".")[0])
            made = MemberDropout(float(one.p), channels=type(one) is not nn.Dropout)
            setattr(parent, name.rpartition(".")[2], made)
    return model


def names(model: nn.Module) -> list[str]:
    """Where a swapped model's keys are, among its buffers."""
    return [f"{name}.key" for name, one in model.named_modules() if isinstance(one, MemberDropout)]
