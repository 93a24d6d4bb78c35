"""Random numbers of several trainings at once, each a pure function of a key and of how many came before.

A key is made of a training's seed and a step. So a training draws the same numbers alone and among others, on
a CPU and on a GPU, and a recorded step draws those of the key that lies on the device.
"""

from __future__ import annotations

from math import prod

import torch

from hostler.train.data.order import MIX

WORD = 0xFFFFFFFF
TRIES = 12  # of a gamma variate; each fails once in twenty at most


class Chance:
    """`keys`: whole numbers, one for each member; `host`: the same in host memory, where the keys are not."""

    def __init__(self, keys: torch.Tensor, host: torch.Tensor | None = None) -> None:
        self._keys, self._host, self._drawn = keys, keys if host is None else host, 0

    @property
    def on_host(self) -> Chance:
        """Numbers of the same keys for whoever decides on the host; none of them are drawn here."""
        return Chance(self._host ^ WORD)

    @property
    def first(self) -> Chance:
        """Numbers of the first member, for what all members share."""
        return Chance(self._keys[:1], self._host[:1])

    def uniform(self, *shape: int) -> torch.Tensor:
        """`[member, …]` in [0, 1)."""
        count = prod(shape)
        places = torch.arange(self._drawn, self._drawn + count, device=self._keys.device)
        self._drawn += count
        return uniform(self._keys[:, None], places).view(-1, *shape)

    def whole(self, below: int, *shape: int) -> torch.Tensor:
        """`[member, …]` of 0, 1, … below this."""
        return (self.uniform(*shape) * below).long().clamp_(max=below - 1)

    def permutation(self, count: int) -> torch.Tensor:
        """`[member, count]`."""
        return self.uniform(count).argsort(dim=-1, stable=True)

    def beta(self, alpha: float) -> torch.Tensor:
        """`[member]` from Beta(alpha, alpha)."""
        if alpha == 1.0:
            return self.uniform(1)[:, 0]
        first, second = self._gamma(alpha), self._gamma(alpha)
        return first / (first + second).clamp_min(1e-30)

    def _gamma(self, alpha: float) -> torch.Tensor:
        """After Marsaglia and Tsang: the first of a few tries that is taken."""
        wide = (alpha if alpha >= 1 else alpha + 1) - 1 / 3
        drawn = 1 - self.uniform(4, TRIES)  # never nothing
        normal = (-2 * drawn[:, 0].log()).sqrt() * (2 * torch.pi * drawn[:, 1]).cos()
        cube = (1 + normal / (9 * wide) ** 0.5) ** 3
        good = drawn[:, 2].log() < normal**2 / 2 + wide * (1 - cube + cube.clamp_min(1e-30).log())
        taken = (good & (cube > 0)).int().argmax(1, keepdim=True)
        tensor: torch.Tensor = wide * cube.gather(1, taken)[:, 0].clamp_min(1e-30)
        return tensor if alpha >= 1 else tensor * drawn[:, 3, 0].pow(1 / alpha)


def uniform(keys: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """Numbers in [0, 1) of these keys at these places; both are spread over one another."""
    low, high = _mixed(keys & WORD), (keys >> 32) & WORD
    tensor = _mixed((low ^ (places * 0x9E3779B9)) & WORD)
    return (_mixed((tensor + high) & WORD) >> 8).float() * 2.0**-24


def _mixed(word: torch.Tensor) -> torch.Tensor:
    """Each bit of 32 depends on all."""
    word = word ^ (word >> 16)
    word = (word * 0x7FEB352D) & WORD
    word = word ^ (word >> 15)
    word = (word * 0x846CA68B) & WORD
    return word ^ (word >> 16)


def keys(seeds: torch.Tensor, steps: torch.Tensor, rank: int = 0) -> torch.Tensor:
    """`[step, member]`: of each the number that `order.mixed(seed, step, rank)` gives."""
    tensor = torch.zeros((), dtype=torch.long)
    for number in (seeds[None, :], steps[:, None], torch.tensor(rank)):
        tensor = ((tensor ^ (number + 1)) * (MIX - 2**64) + 0x632BE59BD9B4E019) & (2**63 - 1)
        tensor = tensor ^ (tensor >> 29)
    return tensor
