"""Random states at the start of the current epoch, for numbers drawn before its inner loop.

A checkpoint inside an epoch keeps them besides those of its own moment. A resumed epoch begins with these
again (so that an order drawn there is the same order), and its inner loop goes on with those of the
checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hostler.sdk.checkpoint import rng


class Beginnings:
    """`tracked` is what the script tracks, among it perhaps generators of its own."""

    def __init__(self, tracked: Callable[[], Mapping[str, Any]]) -> None:
        self._tracked = tracked
        self._now: dict[int, Any] = {}  # depth of a loop → generators when its iteration began
        self._restored: dict[int, Any] = {}
        self._later: Mapping[str, Any] | None = None  # own generators where the inner loop goes on

    def begin(self, depth: int) -> None:
        """An iteration begins: remember, or be as it was when it was begun before the checkpoint."""
        for deeper in [d for d in self._now if d >= depth]:
            del self._now[deeper]
        again = self._restored.pop(depth, None)
        if again is None:
            self._restored.clear()
            self._now[depth] = self._snapshot()
            return
        if self._later is None:
            self._later = self._snapshot()["own"]
        self._put_back(again)
        self._now[depth] = again

    def goes_on(self) -> None:
        """The inner loop goes on: own generators as the checkpoint has them."""
        if self._later is not None:
            self._set_own(self._later)

    def forget(self) -> None:
        """The run has moved on from what was restored."""
        self._later = None

    def state(self, depth: int) -> dict[str, Any]:
        """States of the iterations around a save at this depth."""
        return {str(d): snapshot for d, snapshot in self._now.items() if d < depth}

    def load(self, state: Mapping[str, Any]) -> None:
        self._restored = {int(depth): snapshot for depth, snapshot in state.items()}

    def _own(self) -> dict[str, Any]:
        return {name: one for name, one in self._tracked().items() if rng.is_generator(one)}

    def _snapshot(self) -> dict[str, Any]:
        own = {name: rng.state_of(generator) for name, generator in self._own().items()}
        return {"shared": rng.snapshot(), "own": own}

    def _put_back(self, snapshot: Mapping[str, Any]) -> None:
        rng.put_back(snapshot["shared"])
        self._set_own(snapshot["own"])

    def _set_own(self, states: Mapping[str, Any]) -> None:
        for name, generator in self._own().items():
            if name in states:
                rng.set_state(generator, states[name])
