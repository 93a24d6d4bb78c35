"""XGBoost: saves the booster after each round and resumes with `xgb_model`.

    callback = HostlerCallback(run)
    xgboost.train(params, data, callback.rounds_left(n), xgb_model=callback.model, callbacks=[callback])

Exact for what depends on the data alone. With subsample or colsample a booster draws anew after a restart, as
XGBoost keeps no random state with a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xgboost import Booster
from xgboost.callback import TrainingCallback

from hostler.sdk.run import Run


class HostlerCallback(TrainingCallback):
    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run
        self._state = _XgboostState()
        run.track(xgboost=self._state)

    @property
    def model(self) -> Booster | None:
        """The value for train's xgb_model."""
        return self._state.booster()

    def rounds_left(self, count: int) -> int:
        return max(0, count - self._state.rounds)

    def before_training(self, model: Any) -> Any:
        self._run.at_start()
        return model

    def after_iteration(self, model: Any, epoch: int, evals_log: Mapping[str, Any]) -> bool:
        self._state.model, self._state.rounds = model, model.num_boosted_rounds()
        found = {
            f"{data}/{metric}": _last(values)
            for data, metrics in evals_log.items()
            for metric, values in metrics.items()
        }
        if found:
            self._run.log(found, step=self._state.rounds)
        self._run.at_step(self._state.rounds)
        return False


class _XgboostState:
    def __init__(self) -> None:
        self.model: Any = None
        self.rounds = 0
        self._raw = b""

    def booster(self) -> Booster | None:
        return Booster(model_file=bytearray(self._raw)) if self._raw else None

    def state_dict(self) -> dict[str, Any]:
        raw = bytes(self.model.save_raw("ubj")) if self.model is not None else self._raw
        return {"raw": raw, "rounds": self.rounds}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._raw, self.rounds = bytes(state["raw"]), int(state["rounds"])


def _last(values: Any) -> float:
    last = values[-1]
    return float(last[0] if isinstance(last, tuple) else last)
