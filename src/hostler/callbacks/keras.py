"""Keras: weights, optimiser, seeds of layers and random states, between two epochs.

callback = HostlerCallback(run)
model.compile(…)
callback.restore(model)
model.fit(…, epochs=n, initial_epoch=callback.epoch, callbacks=[callback])
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import keras

from hostler.errors import UsageError
from hostler.sdk.run import Run


class HostlerCallback(keras.callbacks.Callback):
    def __init__(self, run: Run) -> None:
        super().__init__()
        self._run = run
        self.epoch = 0  # fit's initial_epoch
        self._tracked = False

    def restore(self, model: Any) -> None:
        """Track a model that is built and compiled; if the run goes on, it is as it was when this returns."""
        if not model.built or model.optimizer is None:
            raise UsageError(
                "restore() was given a model that is not built and compiled",
                hint="give the model an Input or call model.build(shape), then compile(…)",
            )
        model.optimizer.build(model.trainable_variables)
        self._run.track(keras=_KerasState(self, model))
        self._tracked = True

    def on_train_begin(self, logs: Any = None) -> None:
        if not self._tracked:
            raise UsageError(
                "HostlerCallback does not track a model yet", hint="call callback.restore(model) before fit"
            )
        self._run.at_start()

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self.epoch = epoch + 1
        if logs:
            self._run.log({name: float(value) for name, value in logs.items()}, step=epoch)
        self._run.at_step(self.epoch)


class _KerasState:
    def __init__(self, callback: HostlerCallback, model: Any) -> None:
        self._callback, self._model = callback, model

    def state_dict(self) -> dict[str, Any]:
        return {"epoch": self._callback.epoch, "variables": [_array(v) for v in self._variables()]}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        mine, saved = self._variables(), state["variables"]
        shapes = [tuple(v.shape) for v in mine], [tuple(v.shape) for v in saved]
        if shapes[0] != shapes[1]:
            raise ValueError(f"its variables have shapes {shapes[1]}, but this model's have {shapes[0]}")
        for variable, value in zip(mine, saved, strict=True):
            variable.assign(value)
        self._callback.epoch = int(state["epoch"])

    def _variables(self) -> list[Any]:
        return [*self._model.variables, *self._model.optimizer.variables]


def _array(variable: Any) -> Any:
    """A copy: the variable's own memory goes on changing."""
    return keras.ops.convert_to_numpy(variable.value).copy()
