"""Where a script is in its loops: how many iterations of each are done, as a checkpoint keeps it.

Loops are known by their depth and their order: the second loop inside an epoch is the second again after a
resume. An iteration that is done forgets the loops inside it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BROKEN = -1  # left by `break`: done, whatever its length


class Position:
    def __init__(self) -> None:
        self._done: list[list[int]] = []  # depth → loop → iterations done
        self._opened: list[int] = []  # depth → loops begun, in this process and this iteration
        self._counts = {"epochs": 0, "steps": 0}  # done, of all loops of a kind
        self._counted = -1  # the highest step that was logged
        self.depth = 0  # of the body that runs now
        self.begun = 0  # loops begun in this process

    @property
    def now(self) -> int:
        """The step the run is at: steps done; without any, epochs done."""
        return self._counts["steps"] or self._counts["epochs"]

    def open(self) -> int:
        """Begin the next loop at this depth: its number there."""
        self.begun += 1
        self._opened += [0] * (self.depth + 1 - len(self._opened))
        self._done += [[] for _ in range(self.depth + 1 - len(self._done))]
        number = self._opened[self.depth]
        self._opened[self.depth] += 1
        loops = self._done[self.depth]
        loops += [0] * (number + 1 - len(loops))
        return number

    def done(self, number: int) -> int:
        return self._done[self.depth][number]

    def advance(self, depth: int, number: int, kind: str) -> None:
        """One iteration is done: the loops inside it are forgotten."""
        self._done[depth][number] += 1
        self._counts[kind] += 1
        self._forget(depth)

    def breaks(self, depth: int, number: int) -> None:
        self._done[depth][number] = BROKEN
        self._forget(depth)

    def logged(self) -> int:
        """The step of something logged without one: that of the loops, or else one more than the last."""
        if self.begun:
            return self.now
        self._counted += 1
        return self._counted

    def state(self) -> dict[str, Any]:
        return {
            "done": [list(loops) for loops in self._done],
            "counts": dict(self._counts),
            "counted": self._counted,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        self._done = [[int(n) for n in loops] for loops in state["done"]]
        self._counts = {kind: int(state["counts"][kind]) for kind in self._counts}
        self._counted = int(state["counted"])

    def _forget(self, depth: int) -> None:
        del self._done[depth + 1 :], self._opened[depth + 1 :]
