"""A launch of machines, as every cloud sees it: whose its things are, how it is watched, and given up.

Labels decide whose a thing is, never a name: two projects may come to the same one. Nor do project and fleet
alone: a colleague's copy of the project has both, and another store. No clock of its own is read here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace

from hostler.backends.base import Launch, Thing, Undone
from hostler.frozen import dataclass
from hostler.spec.names import as_label, slug, store_label
from hostler.spec.project import Fleet

PREFIX = "hostler-"
PROJECT, FLEET, STORE = "hostler-project", "hostler-fleet", "hostler-store"
GENERATION = "hostler-generation"
DAY = 24 * 3600.0  # a launch that nobody has given a deadline has this one
TAIL = 12  # lines of a log that are shown
_PART = 18  # characters of a project's or a fleet's name: with what a platform adds it stays under 63


@dataclass(frozen=True)
class Owner:
    """A fleet of a project with its store, as a cloud knows it."""

    project: str
    fleet: str
    store: str  # its URL

    @property
    def labels(self) -> dict[str, str]:
        return {
            PROJECT: as_label(self.project),
            FLEET: as_label(self.fleet),
            STORE: store_label(self.store),
        }

    def name(self, generation: int | str) -> str:
        return f"{PREFIX}{_part(self.project)}-{_part(self.fleet)}-{generation}"

    def things(self, found: Iterable[Thing], *, everywhere: bool = False) -> list[Thing]:
        """Things of this fleet; `everywhere`: of every fleet of its project, other stores' too, which are
        not `ours`."""
        labels = self.labels
        known = [replace(thing, ours=thing.store == labels[STORE]) for thing in found]
        return [
            thing
            for thing in known
            if thing.project == labels[PROJECT]
            and (everywhere or (thing.ours and thing.fleet == labels[FLEET]))
        ]


@dataclass(frozen=True)
class KeepWaiting:
    """Nothing is to be done."""


@dataclass(frozen=True)
class Again:
    """Something was changed: the wait begins anew."""


@dataclass(frozen=True)
class Ready:
    """As many run as are of use, or some do and the rest will come."""


@dataclass(frozen=True)
class GiveUp:
    why: str
    hint: str = ""
    later: bool = False  # the same again may go better


def watch(
    look: Callable[[float], Ready | GiveUp | Again | KeepWaiting],
    take_down: Callable[[GiveUp], Undone],
    *,
    clock: Callable[[], float],
    pause: Callable[[float], None],
    every: float,
) -> None:
    """Look at a launch until it is ready; raise what `take_down` returns if it is given up.

    `look` is told for how many seconds it was waited."""
    begun = clock()
    while True:
        decision = look(clock() - begun)
        if isinstance(decision, Ready):
            return
        if isinstance(decision, GiveUp):
            raise take_down(decision)
        if isinstance(decision, Again):
            begun = clock()
        pause(every)


def taken(thing: str, where: str, whose: str) -> Undone:
    """The refusal of a launch whose name belongs to somebody else."""
    return Undone(
        f"{thing} is taken in {where}: {whose or 'hostler did not make it'}",
        "run the same command again: it takes the next number; or rename the fleet or the project",
        seconds=0.0,
        later=False,
    )


def last_lines(text: str) -> str:
    """The end of a log, as it is shown below an error."""
    return "\n".join(f"  | {line}" for line in [line for line in text.splitlines() if line.strip()][-TAIL:])


def number_of(generation: str) -> str:
    """The number of a launch (`fleet/number`); 1 where nobody counts them."""
    return generation.rpartition("/")[2] or "1"


def deadline_of(launch: Launch, lasts: float = DAY) -> float:
    return launch.deadline if launch.deadline is not None else launch.at + lasts


def scope_of(fleet: Fleet) -> tuple[str, str, str]:
    """Project, fleet and store of an `Owner`."""
    return fleet.scope or "hostler", fleet.name, fleet.store


def _part(text: str) -> str:
    return re.sub(r"[^a-z0-9-]+", "-", slug(text, _PART)).strip("-")
