"""A script's position in its loops: the iterations of each that are done, as checkpoints keep it.

Loops are known by their depth and their order: the second loop inside an epoch is the second again after a
resume. An iteration that is done forgets the loops inside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

BROKEN = -1  # left by `break`: done, whatever its length


class Position:
    def __init__(self) -> None:
        self._done: list[list[int]] = []  # depth → loop → iterations done
        self._opened: list[int] = []  # depth → loops begun, in this process and this iteration
        self._counts = {"epochs": 0, "steps": 0}  # done, of all loops of a kind
        self._counted = 0  # step of what is logged without one, where no loop counts
        self._row: set[str] = set()  # metrics that were logged at that step
        self._stepping = False  # a loop over steps was begun: it counts
        self.ticks = 0  # iterations done, of all loops
        self.loops = 0  # under way
        self.depth = 0  # of the body that runs now
        self.begun = False  # a loop was begun

    @property
    def now(self) -> int:
        """The step the run is at: steps done; without any, epochs done."""
        return self._counts["steps"] or self._counts["epochs"]

    @property
    def epoch(self) -> int | None:
        """The epoch that is under way, where no loop counts steps."""
        return None if self._stepping else self._counts["epochs"]

    def open(self, kind: str) -> int:
        """Begin the next loop at this depth: its number there."""
        self.begun = True
        self._stepping = self._stepping or kind == "steps"
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
        """Count an iteration as done and forget the loops inside it."""
        self._done[depth][number] += 1
        self._counts[kind] += 1
        self.ticks += 1
        self._forget(depth)

    def reach(self, step: int) -> None:
        """A loop that is not one of these has done so many steps."""
        self.begun = self._stepping = True
        self._counts["steps"] = step
        self.ticks += 1

    def breaks(self, depth: int, number: int) -> None:
        self._done[depth][number] = BROKEN
        self._forget(depth)

    def logged(self, names: Iterable[str]) -> int:
        """The step of something logged without one: that of the loop over steps, or else the next one that
        has none of these metrics yet."""
        if self._stepping:
            return self._counts["steps"]
        if not self._row.isdisjoint(names):
            self._counted += 1
            self._row.clear()
        self._row.update(names)
        return self._counted

    def state(self) -> dict[str, Any]:
        return {
            "done": [list(loops) for loops in self._done],
            "counts": dict(self._counts),
            "ticks": self.ticks,
            "counted": self._counted,
            "row": sorted(self._row),
            "stepping": self._stepping,
        }

    def load(self, state: Mapping[str, Any]) -> None:
        self._done = [[int(n) for n in loops] for loops in state["done"]]
        self._counts = {kind: int(state["counts"][kind]) for kind in self._counts}
        self.ticks = int(state["ticks"])
        self._counted, self._row = int(state["counted"]), set(state["row"])
        self._stepping = bool(state["stepping"])

    def _forget(self, depth: int) -> None:
        del self._done[depth + 1 :], self._opened[depth + 1 :]
