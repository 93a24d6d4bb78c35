"""`epochs` and `steps`: loops that begin where the run was, and offer their boundaries for saving."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from hostler.errors import UsageError
from hostler.sdk.position import BROKEN, Position

EPOCH = "epochs"
STEP = "steps"


class Loops:
    def __init__(self, position: Position, boundary: Callable[[str], None]) -> None:
        self._position, self._boundary = position, boundary

    def epochs(self, count: int) -> Iterator[int]:
        return self._run(EPOCH, _count(EPOCH, count), True)

    def steps(self, what: int | Iterable[Any], *, resumes: bool) -> Iterator[Any]:
        """`resumes`: the iterable itself begins where it was."""
        if isinstance(what, Iterable):
            return self._run(STEP, what, not resumes)
        return self._run(STEP, _count(STEP, what), True)

    def _run(self, kind: str, items: Iterable[Any], skip: bool) -> Iterator[Any]:
        position = self._position
        number = position.open()
        depth, done = position.depth, position.done(number)
        if done == BROKEN:
            return
        for item in islice(items, done, None) if skip and done else items:
            position.depth = depth + 1
            try:
                yield item
            except GeneratorExit:
                position.depth = depth
                position.breaks(depth, number)
                raise
            position.depth = depth
            position.advance(depth, number, kind)
            self._boundary(kind)


def _count(name: str, count: Any) -> range:
    try:
        return range(count)
    except TypeError:
        raise UsageError(f"{name}({count!r}): how many?", hint=f"like run.{name}(10)") from None
