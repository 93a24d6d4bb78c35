"""scikit-learn estimators, through pickle: an explicit choice, because loading a pickle runs code.

model = Pickled(SGDClassifier())
run.track(model=model)
for epoch in run.epochs(10):
    model.estimator.partial_fit(x, y, classes=[0, 1])
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from typing import Any

from hostler.errors import UsageError


class Pickled:
    """`estimator` is the one to use: after a resume it is the one that was saved. Its pickle is loaded from a
    checkpoint of this run, whose bytes were checked; whoever can write to the store can put code in it."""

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def state_dict(self) -> dict[str, Any]:
        try:
            return {"kind": _kind(self.estimator), "pickle": pickle.dumps(self.estimator)}
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise UsageError(f"{_kind(self.estimator)} cannot be pickled: {error}") from error

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        if state["kind"] != _kind(self.estimator):
            raise ValueError(f"a {state['kind']} was saved, but this is a {_kind(self.estimator)}")
        self.estimator = pickle.loads(state["pickle"])  # noqa: S301 - asked for by the name of this class


def _kind(estimator: Any) -> str:
    return f"{type(estimator).__module__}.{type(estimator).__qualname__}"
