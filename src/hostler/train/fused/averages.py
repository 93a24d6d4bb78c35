"""The average of each member's weights, in which its newest ones count as its own config says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from hostler.train import newest
from hostler.train.config import Config
from hostler.train.fused.optimizer import like

Tensors = Mapping[str, torch.Tensor]


class Averages:
    """Averages of the members' weights; a member without one has the weights themselves."""

    def __init__(self, configs: Sequence[Config], tensors: Tensors) -> None:
        self._names = [config.averaging for config in configs]
        self._shares = {name: newest.share(name) for name in self._names if name is not None}
        self.tensors = {name: tensor.detach().clone() for name, tensor in tensors.items()}

    def shares(self, first: int, count: int) -> torch.Tensor:
        """`[step, member]`: how much the weights after each of these steps count."""
        found = {
            name: [
                self._shares[name](step + 1) if name is not None else 1.0
                for step in range(first, first + count)
            ]
            for name in set(self._names)
        }
        return torch.tensor([found[name] for name in self._names]).T

    @torch.no_grad()
    def update(self, tensors: Tensors, share: torch.Tensor) -> None:
        for name, mine in self.tensors.items():
            if mine.is_floating_point():
                mine.lerp_(tensors[name], like(share.to(mine.dtype), mine))
            else:
                mine.copy_(tensors[name])

    def keep(self, places: Sequence[int]) -> None:
        """Only these stay."""
        self._names = [self._names[place] for place in places]
        self.tensors = {name: tensor[list(places)] for name, tensor in self.tensors.items()}


def build(configs: Sequence[Config], tensors: Tensors) -> Averages | None:
    """None if nobody keeps an average."""
    return Averages(configs, tensors) if any(config.averaging for config in configs) else None
