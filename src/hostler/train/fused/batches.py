"""Tables of each member's examples at each step of an epoch, on the device.

Members of one order share every batch; else each has its own.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch

from hostler.frozen import dataclass
from hostler.train.data.order import ExampleOrder
from hostler.train.data.split import Arrays


@dataclass(frozen=True)
class Batches:
    arrays: Arrays  # on the device
    orders: tuple[ExampleOrder, ...]  # one, or one for each member

    @property
    def shared(self) -> bool:
        return len(self.orders) == 1

    def table(self, first: int, steps: int, size: int) -> torch.Tensor:
        """`[step, batch]`, or `[step, member·batch]`, of steps of one pass whose batches have this size."""
        passes, place = divmod(first, self.orders[0].steps)
        begin = place * self.orders[0].batch
        device = self.arrays.x.device
        rows = [order.in_pass(passes)[begin : begin + steps * size] for order in self.orders]
        tensor = torch.stack([row.view(steps, size) for row in rows], 1)
        return tensor.flatten(1).to(device)

    def take(self, indices: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets: `[batch, …]`, or `[member, batch, …]`."""
        x, y = self.arrays.x.index_select(0, indices), self.arrays.y.index_select(0, indices)
        if self.shared:
            return x, y
        members = len(self.orders)
        return x.view(members, -1, *x.shape[1:]), y.view(members, -1, *y.shape[1:])

    def size(self, y: torch.Tensor) -> int:
        """Examples of a batch with these targets."""
        return y.shape[0 if self.shared else 1]

    def pieces(self, x: torch.Tensor, y: torch.Tensor, count: int) -> list[tuple[torch.Tensor, torch.Tensor]]:
        """The batch in so many parts, of each member the same examples as alone."""
        along = 0 if self.shared else 1
        return list(zip(x.chunk(count, along), y.chunk(count, along), strict=True))

    def keep(self, members: Sequence[int]) -> Batches:
        return self if self.shared else Batches(self.arrays, tuple(self.orders[member] for member in members))


def of(arrays: Arrays, orders: Sequence[ExampleOrder], *, shared: bool | None = None) -> Batches:
    """`shared`: whether members share every batch; None: where they can."""
    alike = all(order == orders[0] for order in orders) if shared is None else shared
    return Batches(arrays, (orders[0],) if alike else tuple(orders))
