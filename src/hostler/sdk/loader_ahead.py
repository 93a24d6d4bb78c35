"""The position of a loader that Hugging Face's Accelerate has prepared, kept to batch and random number.

Such a loader wraps a plain one and draws a batch ahead, to know the last one as such: what the loop has taken
is one less than what was drawn. A resumed epoch draws that batch again, from the random numbers from which it
was drawn, before all generators are put back to where they stood.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hostler.errors import UsageError
from hostler.sdk.loader import Boundaries, Counted, LoaderPosition


def is_ahead(value: Any) -> bool:
    """Whether Accelerate has prepared this loader; one that keeps its own state is no concern of ours."""
    inner = getattr(value, "base_dataloader", None)
    return inner is not None and hasattr(value, "gradient_state") and not hasattr(inner, "state_dict")


class AheadPosition(LoaderPosition):
    """The position of the plain loader inside, counted as the loop sees it."""

    def __init__(self, name: str, loader: Any, boundaries: Boundaries, resumed: Callable[[], bool]) -> None:
        if not hasattr(loader, "synchronized_generator"):
            raise UsageError(
                f"{name} cannot be tracked: its batches come from the first process alone",
                hint="prepare it with dispatch_batches=False, or leave it out of track()",
            )
        self._outer = loader
        self._drawn_from: Mapping[str, Any] | None = None  # generators before the newest batch was drawn
        super().__init__(name, loader.base_dataloader, boundaries, resumed)

    @property
    def taken(self) -> int:
        current = self._under_way()
        return max(0, current.taken - 1) if current is not None else 0

    def state(self) -> Any:
        current = self._under_way()
        inside = self._waiting
        if current is not None:
            order = None if self.streams else self.order.at(self.taken)
            inside = {**current.state(), "taken": self.taken, "order": order, "drawn_from": self._drawn_from}
        return {"inside": inside, "own": self.snapshot()["own"], "iteration": self._outer.iteration}

    def load(self, state: Any) -> None:
        super().load(state)
        self._outer.iteration = state["iteration"]

    def begin(self, make: Callable[[], Any]) -> Counted:
        self._drawn_from = None
        return super().begin(make)

    def between(self, iteration: int) -> None:
        if self.taken:  # else the loop has not got its first batch yet
            super().between(iteration)
        self._drawn_from = self.snapshot()

    def drew_again(self, generators: Mapping[str, Any] | None) -> None:
        """A resumed iteration holds a batch drawn from these; a save may come before the next is drawn."""
        self._drawn_from = generators

    def counted(self, make: Callable[[], Any], goes_on: Mapping[str, Any] | None) -> Counted:
        return _CountedAhead(self, make, goes_on)

    def _under_way(self) -> Counted | None:
        """The iteration whose end the loop has not reached: the last batch is drawn before it is used."""
        current = self._current() if self._current else None
        used = any(reference is self._outer for reference in self._outer.gradient_state.dataloader_references)
        return current if used else None


class _CountedAhead(Counted):
    """An iterator that, resumed, has drawn one batch more than the loop has taken."""

    _position: AheadPosition
    _held: tuple[Any, ...] = ()

    def __next__(self) -> Any:
        if self._held:
            (batch,), self._held = self._held, ()
            return batch
        return super().__next__()

    def _go_on(self, state: Mapping[str, Any]) -> None:
        super()._go_on(state)
        if state["drawn_from"] is not None:
            self._position.set(state["drawn_from"])
        self._position.drew_again(state["drawn_from"])
        try:
            self._held = (self._next(),)
        except StopIteration:  # the loop had used the last one
            return
