"""Each training's place in its group, as its checkpoints keep it, and who may go on with whom. Pure.

A row of a stack depends on nothing but itself, the width of the stack and its own number in it. So a group
keeps its width to the end, whoever leaves, and is built again with the same one: each training then has the
same numbers to the bit, with whomever it goes on. One that was asked to leave is free: it may take any place
beside trainings that are as far, and its numbers agree up to rounding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from hostler.frozen import dataclass

KEY = "together"  # in the memory of a run
# Reasons to leave after which the whole group goes on elsewhere.
GOING = ("preempted", "leaving", "unreachable", "storeless", "orphaned", "cap")


@dataclass(frozen=True)
class GroupPlace:
    group: str = ""  # '': free
    width: int = 1
    number: int = 0
    shared: bool = True  # all see the same batches


@dataclass(frozen=True)
class Standing:
    """Where one training is before a group is made. `place`: None if none of its steps was in a group."""

    step: int
    place: GroupPlace | None = None

    @property
    def is_free(self) -> bool:
        return self.step == 0 if self.place is None else not self.place.group

    @property
    def began_alone(self) -> bool:
        return self.place is None and self.step > 0


@dataclass(frozen=True)
class GroupChoice:
    """Numbers of those that go together now, that go with others later, and that go by themselves."""

    go: tuple[int, ...]
    later: tuple[int, ...] = ()
    alone: tuple[int, ...] = ()


def began(memory: Mapping[str, Any]) -> bool:
    """Whether it was trained in a group before."""
    return KEY in memory


def of(memory: Mapping[str, Any]) -> GroupPlace | None:
    given = memory.get(KEY)
    return GroupPlace(**given) if isinstance(given, Mapping) else None


def put(memory: dict[str, Any], place: GroupPlace) -> None:
    memory[KEY] = asdict(place)


def after(reason: str, place: GroupPlace) -> GroupPlace:
    """The place that a training keeps when it was asked to leave."""
    return place if reason in GOING else GroupPlace()


def choose(all_of_them: Sequence[Standing]) -> GroupChoice:
    """Chooses the trainings that can share a group with the first able one."""
    alone = tuple(n for n, standing in enumerate(all_of_them) if standing.began_alone)
    able = [n for n in range(len(all_of_them)) if n not in alone]
    if not able:
        return GroupChoice((), (), alone)
    first = all_of_them[able[0]]
    go = tuple(n for n in able if _beside(first, all_of_them[n]))
    return GroupChoice(go, tuple(n for n in able if n not in go), alone)


def _beside(first: Standing, other: Standing) -> bool:
    if first.is_free or other.is_free:
        return first.is_free and other.is_free and first.step == other.step
    assert first.place is not None and other.place is not None
    return first.place.group == other.place.group
