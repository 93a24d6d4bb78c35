"""Between which two batches a save is exact: the loop's body is over, and nothing lives outside the state.

Not while gradients are being gathered over several batches (a tracked optimiser has not stepped since the
last one), and not once a tracked loader has come to its end in this epoch: what follows it would be left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hostler.sdk.loader import LoaderPosition

PATIENCE = 100  # batches after which an optimiser that never steps is no longer waited for


class SafePoints:
    def __init__(self, reached: Callable[[], None]) -> None:
        self._reached = reached
        self._steps: int | None = None  # of tracked optimisers since the last batch; None: none is tracked
        self._idle = 0
        self._ended: dict[str, int] = {}  # loader → iterations it had ended when the epoch began
        self._positions: dict[str, LoaderPosition] = {}
        self._epochs = False
        self._hooks: list[Any] = []

    def watch(self, value: Any) -> None:
        """An optimiser tells when it steps."""
        hook = getattr(value, "register_step_post_hook", None)
        if callable(hook):
            self._steps = 0
            self._hooks.append(hook(self._stepped))

    def close(self) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def epoch_began(self) -> None:
        self._epochs = True
        self._ended = {name: position.rounds for name, position in self._positions.items()}

    def between(self, position: LoaderPosition) -> None:
        """A loader is about to give its next batch."""
        self._positions[position.name] = position
        if self._whole() and self._first_of_epoch(position):
            self._reached()

    def _whole(self) -> bool:
        if self._steps is None:
            return True
        self._idle = 0 if self._steps else self._idle + 1
        stepped, self._steps = self._steps > 0, 0
        return stepped or self._idle > PATIENCE

    def _first_of_epoch(self, position: LoaderPosition) -> bool:
        """No tracked loader has ended in this epoch; where nobody counts epochs, no other one has."""
        for name, other in self._positions.items():
            ended = other.rounds > self._ended.get(name, 0)
            if ended and (self._epochs or name != position.name):
                return False
        return True

    def _stepped(self, *_: Any) -> None:
        if self._steps is not None:
            self._steps += 1
