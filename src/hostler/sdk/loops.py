"""`epochs` and `steps`: loops that begin where the run was, and offer their boundaries for saving."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, Protocol

from hostler.errors import UsageError
from hostler.sdk.position import BROKEN, Position

EPOCH = "epochs"
STEP = "steps"


class Keeps(Protocol):
    """Receives the boundaries of the loops."""

    def boundary(self, kind: str) -> None:
        """An iteration is over: a save here is exact."""

    def epoch_began(self, depth: int) -> None: ...

    def goes_on(self) -> None:
        """A loop stands where it was when the checkpoint was made."""


class Loops:
    def __init__(self, position: Position, keeps: Keeps) -> None:
        self._position, self._keeps = position, keeps

    def epochs(self, count: int) -> Iterator[int]:
        return self._run(EPOCH, _count(EPOCH, count), itself=False)

    def steps(self, what: int | Iterable[Any], *, itself: bool) -> Iterator[Any]:
        """`itself`: a tracked loader, which begins where it was and knows where a save is exact."""
        plain = isinstance(what, (str, bytes)) or not getattr(what, "ndim", 1)  # a tensor of one number
        if isinstance(what, Iterable) and not plain:
            return self._run(STEP, what, itself=itself)
        return self._run(STEP, _count(STEP, what), itself=False)

    def _run(self, kind: str, items: Iterable[Any], *, itself: bool) -> Iterator[Any]:
        position = self._position
        number = position.open(kind)
        depth, done = position.depth, position.done(number)
        left = _left(items, done, itself)
        if done:
            self._keeps.goes_on()
        position.loops += 1
        try:
            for item in left:
                if kind == EPOCH:
                    self._keeps.epoch_began(depth)
                position.depth = depth + 1
                yield item
                position.depth = depth
                position.advance(depth, number, kind)
                if not itself:
                    self._keeps.boundary(kind)
        except GeneratorExit:
            position.depth = depth
            position.breaks(depth, number)
            raise
        finally:
            position.loops -= 1


def _left(items: Iterable[Any], done: int, itself: bool) -> Iterator[Any]:
    """The remaining items; an iterator skips those already used."""
    if done == BROKEN:
        return iter(())
    if isinstance(items, Sequence):
        return iter(items[done:])
    left = iter(items)
    if not itself:
        for _ in islice(left, done):
            pass
    return left


def _count(name: str, count: Any) -> range:
    try:
        return range(count)
    except TypeError:
        raise UsageError(
            f"{name}({count!r}): the count must be a whole number", hint=f"for example run.{name}(10)"
        ) from None
