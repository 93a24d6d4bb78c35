"""An average of the weights along the way: `ema_<g>` or `poly_<eta>`.

`ema`: g is the weight of the old average. `poly`: the new model weighs (eta+1)/(eta+t) at step t; poly_0 is
the plain mean. Integer buffers are copied; weights with two names are averaged once.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import torch

from hostler.errors import SpecError

EMA = 0.99
_HINT = "ema_0.99, or poly_8"


class Average:
    """Tracked like a model: its state is the averaged weights and how many were averaged."""

    def __init__(self, name: str, model: torch.nn.Module) -> None:
        self._weight = new_weight(name)
        self.model = copy.deepcopy(model).eval().requires_grad_(False)
        self._count = 0

    @torch.no_grad()
    def update(self, model: torch.nn.Module) -> None:
        self._count += 1
        weight = 1.0 if self._count == 1 else self._weight(self._count)
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


def new_weight(name: str) -> Callable[[int], float]:
    """Weight of the newest model as a function of t = 1, 2, …"""
    kind, _, rest = name.partition("_")
    try:
        given = float(rest) if rest else None
    except ValueError:
        raise SpecError(f"averaging {name!r}: {rest!r} is not a number", hint=_HINT) from None
    if kind == "ema":
        old = EMA if given is None else given
        if not 0 <= old < 1:
            raise SpecError(f"averaging {name!r}: the weight of the old average is in [0, 1)", hint=_HINT)
        return lambda t: 1 - old
    if kind == "poly" and given is not None and given >= 0:
        eta = given
        return lambda t: (eta + 1) / (eta + t)
    raise SpecError(f"there is no averaging {name!r}", hint=_HINT)
