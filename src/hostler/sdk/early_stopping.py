"""Says when a metric has stopped getting better.

Its whole state is in `state_dict`: tracked by a run, or made by a Manager, it goes on after a restart as if
there had been none. A value that is not a number is never an improvement and uses patience up, so a
diverged training ends instead of running for ever.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, SupportsFloat

from hostler.errors import UsageError
from hostler.spec.nearest import did_you_mean

MODES = ("min", "max")


class EarlyStopping:
    """`stop(metric)` is True once `patience` metrics in a row were no better than the best before them.

    Better is lower for `mode="min"` and higher for "max", by more than `min_delta`.
    """

    made: ClassVar[Callable[[EarlyStopping], None] | None] = (
        None  # a Manager hears of each, to keep its state
    )

    def __init__(self, mode: str = "min", patience: int = 10, min_delta: float = 0.0) -> None:
        if mode not in MODES:
            raise UsageError(
                f"EarlyStopping's mode cannot be {mode!r}",
                hint=did_you_mean(str(mode), MODES, "'min' or 'max'"),
            )
        if isinstance(patience, bool) or not isinstance(patience, int) or patience < 1:
            raise UsageError(
                f"EarlyStopping's patience cannot be {patience!r}", hint="give a whole number from 1 on"
            )
        if not min_delta >= 0:
            raise UsageError(
                f"EarlyStopping's min_delta cannot be {min_delta!r}", hint="give a number from 0 on"
            )
        self.mode, self.patience, self.min_delta = mode, patience, float(min_delta)
        self.best: float | None = None
        self.bad = 0  # metrics in a row that were no better
        if EarlyStopping.made is not None:
            EarlyStopping.made(self)

    def stop(self, metric: SupportsFloat) -> bool:
        """Whether it is time to stop, now that this is the newest value."""
        value = _number(metric)
        if self._is_better(value):
            self.best, self.bad = value, 0
        else:
            self.bad += 1
        _newest[:] = [self]
        return self.stopped

    @property
    def stopped(self) -> bool:
        """Whether patience is used up."""
        return self.bad >= self.patience

    def state_dict(self) -> dict[str, Any]:
        return {
            "mode": self.mode,
            "patience": self.patience,
            "min_delta": self.min_delta,
            "best": self.best,
            "bad": self.bad,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where it was saved. Patience and min_delta stay this one's own."""
        if state["mode"] != self.mode:
            raise UsageError(
                f"EarlyStopping has mode {self.mode!r}, but was saved with mode {state['mode']!r}",
                hint="the saved best value means nothing in the other direction: use the old mode",
            )
        best = state["best"]
        self.best, self.bad = None if best is None else float(best), int(state["bad"])

    def _is_better(self, value: float) -> bool:
        if math.isnan(value):
            return False
        if self.best is None:
            return True
        gain = self.best - value if self.mode == "min" else value - self.best
        return gain > self.min_delta


_newest: list[EarlyStopping] = []  # the one that was asked last


def take_stopped() -> bool:
    """Whether the one that was asked last has said that it is time to stop. The next run asks another."""
    asked = [stopping.stopped for stopping in _newest]
    _newest.clear()
    return any(asked)


def _number(metric: SupportsFloat) -> float:
    try:
        return float(metric)
    except (TypeError, ValueError):
        raise UsageError(
            f"EarlyStopping.stop was given {type(metric).__name__}, which is not one number",
            hint="give it a float, or a tensor with one element",
        ) from None
