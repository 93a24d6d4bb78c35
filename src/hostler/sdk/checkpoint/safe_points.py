"""Finds the batches between which a save is exact: the loop's body is over and holds no other state.

Only in the first iteration of a tracked loader in an epoch: one inside its body is the middle of that body,
and what follows it would be left out or done twice. Not while gradients are being gathered over several
batches (a tracked optimiser has not stepped since the last one).
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
        self._first: tuple[str, int] | None = None  # of this epoch: the loader, and which of its iterations
        self._epochs = False
        self._early: list[LoaderPosition] = []  # iterated before the first epoch
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
        for position in self._early:
            position.take_back()
        self._early = []
        self._epochs, self._first = True, None

    def begins(self, position: LoaderPosition) -> None:
        """A loader is iterated anew. Where nobody counts epochs, that is the next one of the same loader."""
        if not self._epochs:
            self._early.append(position)
        again = not self._epochs and self._first is not None and self._first[0] == position.name
        if self._first is None or again:
            self._first = position.name, position.iteration

    def between(self, position: LoaderPosition) -> None:
        """A loader is about to give its next batch."""
        if self._first is None:  # its iteration is older than the epoch
            self._first = position.name, position.iteration
        if self._first == (position.name, position.iteration) and self._whole():
            self._reached()

    def _whole(self) -> bool:
        if self._steps is None:
            return True
        self._idle = 0 if self._steps else self._idle + 1
        stepped, self._steps = self._steps > 0, 0
        return stepped or self._idle > PATIENCE

    def _stepped(self, *_: Any) -> None:
        if self._steps is not None:
            self._steps += 1
