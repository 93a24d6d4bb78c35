"""An average of the weights along the way, in which the newest counts as `newest.py` says.

Integer buffers are copied; weights with two names are averaged once.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

from hostler.train import newest


class Average:
    """Tracked like a model: its state is the averaged weights and how many were averaged."""

    def __init__(self, name: str, model: torch.nn.Module) -> None:
        self._share = newest.share(name)
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self._count = 0

    @torch.no_grad()
    def update(self, model: torch.nn.Module) -> None:
        self._count += 1
        weight = self._share(self._count)
        mine, theirs = self.model.state_dict(), model.state_dict()
        floats = [n for n, value in _once(mine).items() if value.is_floating_point()]
        torch._foreach_lerp_([mine[n] for n in floats], [theirs[n] for n in floats], weight)
        for name, value in mine.items():
            if not value.is_floating_point():
                value.copy_(theirs[name])

    def state_dict(self) -> dict[str, Any]:
        return {"model": self.model.state_dict(), "count": self._count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self._count = int(state["count"])


def _once(state: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Tied weights by one of their names."""
    names = {(value.data_ptr(), value.shape): name for name, value in state.items()}
    return {name: state[name] for name in names.values()}
