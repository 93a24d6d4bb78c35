"""Breadth-first search through every state of a machine, with the shortest path to what breaks.

The search is exhaustive within the machine's own bounds; it raises rather than stop half-way.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

S = TypeVar("S", bound=Hashable)


class Machine(Protocol[S]):
    def start(self) -> S: ...

    def steps(self, state: S) -> Iterable[tuple[str, S]]: ...

    def broken(self, state: S) -> str:
        """The promise that this state breaks, or ''."""

    def ended(self, state: S) -> bool:
        """Is this a state that must stay within reach of all others?"""

    def out_of_bounds(self, state: S) -> bool:
        """Is this a state of which progress is not promised?"""


@dataclass(frozen=True)
class Report:
    states: int
    wrong: str = ""  # 'P<n>: …'
    trace: tuple[str, ...] = ()

    @property
    def promise(self) -> str:
        return self.wrong.partition(":")[0]

    def __str__(self) -> str:
        if not self.wrong:
            return f"{self.states} states, every promise holds"
        lines = [f"{n:3}. {step}" for n, step in enumerate(self.trace, 1)]
        return "\n".join([f"{self.wrong} (after {self.states} states)", *lines])


def search(machine: Machine[S], limit: int = 2_000_000) -> Report:
    """Visits every reachable state; reports the first broken promise in breadth-first order."""
    found = _Found(machine.start())
    for at, state in enumerate(found.states):  # the list grows while it is read
        wrong = machine.broken(state)
        if wrong:
            return Report(len(found.states), wrong, found.path(at))
        for said, after in machine.steps(state):
            found.add(at, said, after)
        if len(found.states) > limit:
            raise RuntimeError(f"more than {limit} states: give the world smaller bounds")
    stuck = _first_stuck(machine, found)
    if stuck is None:
        return Report(len(found.states))
    return Report(len(found.states), "P5: from here the run can never end", found.path(stuck))


class _Found(Generic[S]):
    """The states met so far, how each was first reached, and what leads to it."""

    def __init__(self, first: S) -> None:
        self.states = [first]
        self.places = {first: 0}
        self.came = [(-1, "")]
        self.into: list[list[int]] = [[]]

    def add(self, at: int, said: str, after: S) -> None:
        place = self.places.setdefault(after, len(self.states))
        if place == len(self.states):
            self.states.append(after)
            self.came.append((at, said))
            self.into.append([])
        self.into[place].append(at)

    def path(self, at: int) -> tuple[str, ...]:
        steps: list[str] = []
        while at > 0:
            at, said = self.came[at]
            steps.append(said)
        return tuple(reversed(steps))


def _first_stuck(machine: Machine[S], found: _Found[S]) -> int | None:
    """The first state from which no path leads to an end."""
    open_ = [at for at, state in enumerate(found.states) if machine.ended(state)]
    hopeful = set(open_)
    while open_:
        for before in found.into[open_.pop()]:
            if before not in hopeful:
                hopeful.add(before)
                open_.append(before)
    for at, state in enumerate(found.states):
        if at not in hopeful and not machine.out_of_bounds(state):
            return at
    return None
