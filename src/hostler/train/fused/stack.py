"""The models of several trainings as one: each parameter and buffer with a first dimension of members."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch
from torch import nn

from hostler.train.fused import dropout, layers
from hostler.train.fused.alike import Apart


class ModelStack:
    def __init__(self, models: Sequence[nn.Module], device: torch.device) -> None:
        first = models[0]
        why = _odd(first)
        if why:
            raise Apart(f"the model {why}")
        shaped = dropout.swapped(first)
        self._layer, self._drops = layers.build(shaped), dropout.names(shaped)
        learnt = {name for name, parameter in first.named_parameters() if parameter.requires_grad}
        owns = [{**dict(model.named_parameters()), **dict(model.named_buffers())} for model in models]
        every = {name: torch.stack([own[name].detach() for own in owns]).to(device) for name in owns[0]}
        self.parameters = {name: every[name].requires_grad_() for name in every if name in learnt}
        self.buffers = {name: every[name] for name in every if name not in learnt}
        keys = torch.zeros(len(models), dtype=torch.long, device=device)
        self.buffers |= {name: keys.clone() for name in self._drops}
        self._saved = [*first.state_dict()]

    def __len__(self) -> int:
        return len(next(iter(self.parameters.values())))

    def __call__(
        self, x: torch.Tensor, weights: Mapping[str, torch.Tensor], *, shared: bool, training: bool
    ) -> torch.Tensor:
        """Outputs `[member, batch, …]`; in training, buffers among the weights change."""
        return self._layer(layers.Value(x, not shared), weights, training).tensor

    @property
    def draws(self) -> bool:
        """Whether it drops at random in training."""
        return bool(self._drops)

    def keyed(self, keys: torch.Tensor, piece: int) -> dict[str, torch.Tensor]:
        """All tensors, with numbers of its own for each dropout and piece of a batch."""
        first = piece * len(self._drops)
        return {**self.tensors, **{name: keys + first + n for n, name in enumerate(self._drops)}}

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
        self.buffers = {name: tensor[members] for name, tensor in self.buffers.items()}


def _odd(model: nn.Module) -> str:
    """The reason why a model cannot be stacked; '' if it can."""
    named = [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]
    found = {
        "drops in a way of its own": layers.draws(model),
        "has weights with two names": len({id(tensor) for _, tensor in named}) < len(named),
        "keeps more than tensors": any(not torch.is_tensor(one) for one in model.state_dict().values()),
        "has nothing that is trained": not any(parameter.requires_grad for parameter in model.parameters()),
    }
    return next((why for why, holds in found.items() if holds), "")
