"""The seam to every search: what may be asked, and what it is asked about.

A searcher is pure over history: it knows no store, no clock and no worker. Scores are values turned so that
more is better; what is not a number is the worst there is.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from hostler.frozen import dataclass

Scores = Mapping[str, float]  # run → score
Rungs = Mapping[int, Scores]  # level → scores of the runs that have reached it

WORST = -math.inf


@dataclass(frozen=True)
class New:
    """A configuration to try: `picks` is what the sampler chose, `attrs` what it wants to remember."""

    picks: Mapping[str, Any]
    attrs: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Resume:
    """A paused run goes on, to be judged again at level `until`."""

    run: str
    until: int


@dataclass(frozen=True)
class Wait:
    """Nothing now, but what runs may change that."""


@dataclass(frozen=True)
class Done:
    """Nothing more, whatever comes."""

    why: str = ""


@dataclass(frozen=True)
class Go:
    """The run goes on."""


@dataclass(frozen=True)
class Pause:
    """The run saves and gives its place to another; it may go on later."""


@dataclass(frozen=True)
class Stop:
    """The run saves and ends."""

    why: str = ""


Answer = New | Resume | Wait | Done
Verdict = Go | Pause | Stop


@dataclass(frozen=True)
class Trial:
    """A run as a search sees it. `values`: one for each objective, once it has ended with all of them."""

    number: int  # index of the run in its sweep
    run: str
    state: str
    picks: Mapping[str, Any] = field(default_factory=dict)
    attrs: Mapping[str, Any] = field(default_factory=dict)
    values: tuple[float, ...] | None = None
    curve: Mapping[int, float] = field(default_factory=dict)  # level → value, as far as it came
    end: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)  # what it was told by


@dataclass(frozen=True)
class History:
    """All trials in order of their number, and the scores at the levels where runs are compared."""

    trials: Sequence[Trial] = ()
    rungs: Rungs = field(default_factory=dict)


@dataclass(frozen=True)
class Standing:
    """Where a run is when it is judged: the level it has reached, and its scores so far, in order."""

    run: str
    level: int
    curve: Sequence[float] = ()


class Pruner(Protocol):
    """Decides which runs go on."""

    @property
    def compares(self) -> bool:
        """Whether it needs the scores of other runs."""

    @property
    def pauses(self) -> bool:
        """Whether runs may wait and go on later."""

    def level(self, step: int, run: str) -> int:
        """The highest level that a run at this step has reached; 0: none yet."""

    def judge(self, place: Standing, rungs: Rungs) -> Verdict:
        """Decide on a run that has just reached a level; its own score is among the rungs'."""

    def promote(self, rungs: Rungs, paused: Sequence[str], *, over: bool) -> Resume | None:
        """The paused run that should go on now. `over`: nothing is queued or running, nothing new comes, and
        the rungs are without the runs that failed."""


class Searcher(Protocol):
    """The search that workers ask when nothing is queued."""

    def ask(self, history: History) -> Answer:
        """The next thing to do."""

    def should_prune(self, place: Standing, history: History) -> Verdict:
        """Decide on a run that has just reached a level."""


def score(value: float, goal: str) -> float:
    """The value, turned so that more is better."""
    if math.isnan(value):
        return WORST
    return value if goal == "max" else -value


def number_of(run: str) -> int:
    """The index with which a run's id begins."""
    return int(run.split("-", 1)[0])
