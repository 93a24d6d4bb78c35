"""Losses scaled for gradients of 16 bits, with a scale of its own for each member, as `torch.amp.GradScaler`
has it: a member whose gradients overflow skips the step, and its scale is halved."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch

from hostler.train.fused.optimizer import like

FIRST, GROWTH, BACK, PATIENCE = 65536.0, 2.0, 0.5, 2000  # of torch's own


class LossScale:
    def __init__(self, members: int, device: torch.device) -> None:
        self.scale = torch.full((members,), FIRST, device=device)
        self.good = torch.zeros(members, dtype=torch.int32, device=device)  # steps since the last overflow

    def unscaled(self, gradients: Sequence[torch.Tensor]) -> tuple[list[torch.Tensor], torch.Tensor]:
        """The gradients as they are, and `[member]`: whether some of its own are NaN or infinite."""
        part = 1 / self.scale
        tensors = [gradient * like(part, gradient) for gradient in gradients]
        whole = torch.stack([tensor.flatten(1).isfinite().all(1) for tensor in tensors])
        return tensors, ~whole.all(0)

    @contextmanager
    def skipping(self, bad: torch.Tensor, changed: Iterable[torch.Tensor]) -> Iterator[None]:
        """Leave these members as they were before the step; then move the scales."""
        before = [(tensor, tensor.detach().clone()) for tensor in changed]
        yield
        with torch.no_grad():
            for one, old in before:
                one.copy_(torch.where(like(bad, one), old, one))
            self._move(bad)

    def _move(self, bad: torch.Tensor) -> None:
        self.good.copy_(torch.where(bad, 0, self.good + 1))
        grows = self.good >= PATIENCE
        self.scale.mul_(torch.where(bad, BACK, torch.where(grows, GROWTH, 1.0)))
        self.good.masked_fill_(grows, 0)

    def keep(self, members: torch.Tensor) -> None:
        self.scale, self.good = self.scale[members], self.good[members]

    @property
    def tensors(self) -> tuple[torch.Tensor, ...]:
        return self.scale, self.good

    def state(self, member: int) -> dict[str, torch.Tensor]:
        return {"scale": self.scale[member].clone(), "good": self.good[member].clone()}

    def load(self, member: int, state: Mapping[str, Any]) -> None:
        self.scale[member], self.good[member] = state["scale"], state["good"]
