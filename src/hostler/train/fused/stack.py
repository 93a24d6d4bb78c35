"""The models of several trainings as one: each parameter and buffer with a first dimension of members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from hostler.train.fused import layers
from hostler.train.fused.alike import Apart


class Stack:
    def __init__(self, models: Sequence[nn.Module], device: torch.device) -> None:
        first = models[0]
        if layers.draws(first):
            raise Apart("cannot be trained together: the model has dropout", "they are trained one by one")
        self._layer = layers.build(first)
        learnt = {name for name, one in first.named_parameters() if one.requires_grad}
        states = [model.state_dict() for model in models]
        every = {name: torch.stack([state[name] for state in states]).to(device) for name in states[0]}
        self.parameters = {name: every[name].requires_grad_() for name in every if name in learnt}
        self.buffers = {name: every[name] for name in every if name not in learnt}

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values())))

    def __call__(self, x: torch.Tensor, *, shared: bool, training: bool) -> torch.Tensor:
        """Outputs `[member, batch, …]`."""
        state = {**self.parameters, **self.buffers}
        return self._layer(layers.Value(x, not shared), state, training).tensor

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        return {**self.parameters, **self.buffers}

    def state(self, member: int) -> dict[str, torch.Tensor]:
        """The weights of one, as its own model would save them."""
        return {name: one.detach()[member].clone() for name, one in self.tensors.items()}

    @torch.no_grad()
    def load(self, member: int, state: Mapping[str, torch.Tensor]) -> None:
        for name, one in self.tensors.items():
            one[member].copy_(state[name])

    def keep(self, members: torch.Tensor) -> None:
        """Only these stay."""
        self.parameters = {n: p.detach()[members].requires_grad_() for n, p in self.parameters.items()}
        self.buffers = {name: one[members] for name, one in self.buffers.items()}
