"""Sums over an epoch's batches, on the device until somebody asks; kept in checkpoints made in the
middle of one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from hostler.train.ranks import Ranks


class Meter:
    """Sums of one rank. A checkpoint of another number of them is scaled to be one of so many: exact
    where they are more by a factor, and else as good as the parts are alike."""

    def __init__(self, device: torch.device, ranks: int = 1) -> None:
        self._ranks, self.moved = ranks, False  # the checkpoint was another number's
        self._loss, self._right = (torch.zeros((), dtype=torch.float64, device=device) for _ in range(2))
        self._seen = 0.0
        self.time = self.data_time = 0.0

    def add(self, loss: torch.Tensor, right: torch.Tensor, count: int) -> None:
        """The loss is a mean over `count` examples. Two operations: small models notice each."""
        self._loss.add_(loss.detach(), alpha=count)
        self._right.add_(right)
        self._seen += count

    def clear(self) -> None:
        self._put(torch.zeros(3, dtype=torch.float64))
        self.time = self.data_time = 0.0

    def row(self, ranks: Ranks) -> dict[str, float]:
        loss, right, seen = ranks.sum(self._sums()).tolist()
        seen = max(seen, 1.0)
        return {"loss": loss / seen, "accuracy": right / seen, "time": self.time, "data_time": self.data_time}

    def state_dict(self) -> dict[str, Any]:
        times = {"time": self.time, "data_time": self.data_time}
        return {"sums": self._sums().cpu(), "ranks": self._ranks, **times}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        before = int(state["ranks"])
        self.moved = before != self._ranks
        self._put(state["sums"] * (before / self._ranks))
        self.time, self.data_time = float(state["time"]), float(state["data_time"])

    def _sums(self) -> torch.Tensor:
        seen = torch.full((), self._seen, dtype=torch.float64, device=self._loss.device)
        return torch.stack([self._loss, self._right, seen])

    def _put(self, sums: torch.Tensor) -> None:
        self._loss.copy_(sums[0])
        self._right.copy_(sums[1])
        self._seen = float(sums[2])
