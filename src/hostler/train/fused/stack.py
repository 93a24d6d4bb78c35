"""The models of several trainings as one: each parameter and buffer with a first dimension of members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from hostler.train.fused import layers
from hostler.train.fused.alike import Apart


class ModelStack:
    def __init__(self, models: Sequence[nn.Module], device: torch.device) -> None:
        first = models[0]
        why = _odd(first)
        if why:
            raise Apart(f"the model {why}")
        self._layer = layers.build(first)
        learnt = {name for name, one in first.named_parameters() if one.requires_grad}
        owns = [{**dict(model.named_parameters()), **dict(model.named_buffers())} for model in models]
        every = {name: torch.stack([own[name].detach() for own in owns]).to(device) for name in owns[0]}
        self.parameters = {name: every[name].requires_grad_() for name in every if name in learnt}
        self.buffers = {name: every[name] for name in every if name not in learnt}
        self._saved = [*first.state_dict()]

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values())))

    def __call__(
        self, x: torch.Tensor, weights: Mapping[str, torch.Tensor], *, shared: bool, training: bool
    ) -> torch.Tensor:
        """Outputs `[member, batch, …]`; in training, buffers among the weights change."""
        return self._layer(layers.Value(x, not shared), weights, training).tensor

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        return {**self.parameters, **self.buffers}

    def state(
        self, member: int, tensors: Mapping[str, torch.Tensor] | None = None
    ) -> dict[str, torch.Tensor]:
        """The weights of one, as its own model would save them; or of others by the same names."""
        given = self.tensors if tensors is None else tensors
        return {name: given[name].detach()[member].clone() for name in self._saved}

    @torch.no_grad()
    def load(
        self,
        member: int,
        state: Mapping[str, torch.Tensor],
        tensors: Mapping[str, torch.Tensor] | None = None,
    ) -> None:
        given = self.tensors if tensors is None else tensors
        for name in self._saved:
            given[name][member].copy_(state[name])

    def keep(self, members: torch.Tensor) -> None:
        """Only these stay."""
        self.parameters = {n: p.detach()[members].requires_grad_() for n, p in self.parameters.items()}
        self.buffers = {name: one[members] for name, one in self.buffers.items()}


def _odd(model: nn.Module) -> str:
    """The reason why a model cannot be stacked; '' if it can."""
    named = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    found = {
        "has dropout": layers.draws(model),
        "has weights with two names": len({id(one) for _, one in named}) < len(named),
        "keeps more than tensors": any(not torch.is_tensor(one) for one in model.state_dict().values()),
        "has nothing that is trained": not any(one.requires_grad for one in model.parameters()),
    }
    return next((why for why, holds in found.items() if holds), "")
