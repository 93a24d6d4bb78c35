"""The examples of each step: a pure function of the seed and the step.

So the place inside an epoch needs no state, and is the same for any number of loader workers and ranks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import torch

from hostler.frozen import dataclass

MIX = 0x9E3779B97F4A7C15


def mixed(*numbers: int) -> int:
    """A seed made of several numbers."""
    found = 0
    for number in numbers:
        found = ((found ^ (number + 1)) * MIX + 0x632BE59BD9B4E019) % 2**63
        found ^= found >> 29
    return found


@lru_cache(maxsize=256)
def shuffled(count: int, seed: int, passes: int) -> torch.Tensor:
    """The order of the examples in one pass over the data."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(mixed(seed, passes)))


@dataclass(frozen=True)
class ExampleOrder:
    count: int
    batch: int
    seed: int
    shuffle: Callable[[int, int, int], torch.Tensor] = shuffled  # count, seed, pass → an order

    @property
    def steps(self) -> int:
        """Steps of one pass; the last batch holds the rest."""
        return -(-self.count // self.batch)

    def at(self, step: int) -> torch.Tensor:
        """The examples of a step, counted from the beginning of the training."""
        return self.in_pass(step // self.steps)[self.places(step)]

    def places(self, step: int) -> slice:
        """Where they stand in their pass."""
        first = step % self.steps * self.batch
        return slice(first, min(first + self.batch, self.count))

    def size(self, step: int) -> int:
        """How many they are."""
        places = self.places(step)
        return int(places.stop - places.start)

    def in_pass(self, passes: int) -> torch.Tensor:
        """All examples, as one pass over the data sees them."""
        return self.shuffle(self.count, self.seed, passes)

    def seen(self, step: int) -> int:
        """Examples of all steps before this one."""
        passes, place = divmod(step, self.steps)
        return passes * self.count + min(place * self.batch, self.count)
