"""LightGBM: saves the booster after each round and resumes with `init_model`.

    callback = HostlerCallback(run)
    lightgbm.train(params, data, callback.rounds_left(n), init_model=callback.model, callbacks=[callback])

Exact for what depends on the data alone. With bagging or feature_fraction a booster draws anew after a
restart, as LightGBM keeps no random state with a model.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lightgbm import Booster

from hostler.sdk.run import Run


class HostlerCallback:
    order = 90  # after those that evaluate and record
    before_iteration = False

    def __init__(self, run: Run) -> None:
        self._run = run
        self._state = _BoosterState()
        run.track(lightgbm=self._state)
        run.at_start()

    @property
    def model(self) -> Booster | None:
        """The value for train's init_model."""
        return Booster(model_str=self._state.text) if self._state.text else None

    def rounds_left(self, count: int) -> int:
        return max(0, count - self._state.rounds)

    def __call__(self, env: Any) -> None:
        self._state.model, self._state.rounds = env.model, env.model.current_iteration()
        found = {f"{row[0]}/{row[1]}": float(row[2]) for row in env.evaluation_result_list or ()}
        if found:
            self._run.log(found, step=self._state.rounds)
        self._run.at_step(self._state.rounds)


class _BoosterState:
    def __init__(self) -> None:
        self.model: Any = None
        self.rounds = 0
        self.text = ""

    def state_dict(self) -> dict[str, Any]:
        text = self.model.model_to_string() if self.model is not None else self.text
        return {"text": text, "rounds": self.rounds}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.text, self.rounds = str(state["text"]), int(state["rounds"])
