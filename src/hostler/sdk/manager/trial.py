"""A Manager's record of one trial: progress, the best so far, the epoch to resume at.

Its whole state is in `state_dict`, so that a restart changes nothing. An epoch counts as trained once
something happened after it was announced: progress of another kind, or a step of an optimiser.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from hostler.errors import UsageError
from hostler.sdk.checkpoint.best import Best, best_of

EPOCHS = "epochs"

Weights = Mapping[str, Any]


class Trial:
    def __init__(self) -> None:
        self.progress: dict[str, list[Any]] = {}
        self.best: Best | None = None
        self.best_weights: Weights | None = None
        self.given: dict[str, Weights] = {}  # what save_progress was handed: params, best
        self._epoch: int | None = None  # announced last
        self._trained = False

    def compare(self, metric: str, goal: str) -> None:
        """Judge by this metric from now on; what was the best by the same one stays it."""
        if self.best is None or (self.best.metric, self.best.goal) != (metric, goal):
            self.best, self.best_weights = best_of(metric, goal), None

    def announce(self, epoch: int) -> None:
        self._epoch, self._trained = epoch, False

    def worked(self) -> None:
        self._trained = True

    def add(self, key: str, value: Any) -> bool:
        """Whether it is the best so far."""
        self.progress.setdefault(key, []).append(value)
        if key != EPOCHS:
            self.worked()
        if self.best is None or key != self.best.metric:
            return False
        after = self.best.after(_number(key, value), len(self.progress[key]) - 1)
        improved, self.best = after is not self.best, after
        return improved

    def keep(self, weights: Weights) -> None:
        """Keep a copy as the best, since the training goes on with the same tensors."""
        self.best_weights = copy.deepcopy(dict(weights))

    @property
    def start_epoch(self) -> int:
        """The epoch to go on with. Where none was ever announced, as many as the least frequent progress."""
        if self._epoch is not None:
            return self._epoch + 1 if self._trained else self._epoch
        return min(map(len, self.progress.values()), default=0)

    def state_dict(self) -> dict[str, Any]:
        best = None if self.best is None else {"metric": self.best.metric, **self.best.state()}
        return {
            "progress": copy.deepcopy(self.progress),
            "best": best,
            "best_weights": self.best_weights,
            "given": dict(self.given),
            "epoch": self._epoch,
            "trained": self._trained,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.progress = {key: list(values) for key, values in state["progress"].items()}
        self.best = Best(**state["best"]) if state["best"] else None
        self.best_weights, self.given = state["best_weights"], dict(state["given"])
        self._epoch, self._trained = state["epoch"], bool(state["trained"])


def _number(key: str, value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise UsageError(
            f"{key} is compared, but {type(value).__name__} is not a number", hint="give add_progress a float"
        ) from None
