"""The interface of every tracking tool: opened once per attempt, given points, closed.

A tool is a copy of what the store holds. It may fail, hang or lose what it was given: nothing here is read
back to decide anything of a run. The same run has the same id in a tool for ever, so that a later attempt, or
an export, goes on where the one before it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import asdict, field
from typing import Any, Protocol

from hostler.frozen import dataclass
from hostler.records.series.points import Point

Held = tuple[str, int]  # a metric's name, and a step


@dataclass(frozen=True)
class Opening:
    """Facts that a tool gets before the first point."""

    kind: str
    id: str  # the run's, in the tool: 32 hexadecimal digits
    run: str
    name: str  # as people see it
    sweep: str
    project: str
    attempt: int
    folder: str  # local, and ours: the tool's files, finished ones below `files/`
    config: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()
    notes: str = ""
    options: Mapping[str, str] = field(default_factory=dict)
    started: float = 0.0


@dataclass(frozen=True)
class Opened:
    """A tool's answer to `open`."""

    url: str = ""
    note: str = ""  # one line for the run's log


@dataclass(frozen=True)
class Closing:
    """The end of an attempt: `state` is the run's if it has ended, '' if another attempt may follow."""

    state: str = ""
    config: Mapping[str, Any] = field(default_factory=dict)  # what the script chose besides
    tags: tuple[str, ...] = ()
    summary: Mapping[str, Any] = field(default_factory=dict)  # what finish() was given
    ended: float = 0.0


class Tracker(Protocol):
    """A tool, for one run. It may raise any error of its library, which the feeder shortens to one line.

    A tool that keeps what it once got leaves out points that it holds (`without`); any other begins anew at
    each attempt, with all that counts."""

    def open(self, opening: Opening) -> Opened: ...

    def log(self, points: Sequence[Point]) -> None: ...

    def flush(self) -> None:
        """From time to time: what was logged may now be shown."""
        ...

    def close(self, closing: Closing) -> None: ...


def run_id(submission: str, run: str) -> str:
    """The id of a run in every tool: of its sweep's submission, so that another sweep of the same name, in
    this store or another, has others; and the same in every attempt."""
    return hashlib.sha256(json.dumps([submission, run]).encode()).hexdigest()[:32]


def offline(opening: Opening, missing: str, sends: str) -> Opened:
    """Files that a command sends later; `missing`: the key for want of which they are."""
    place = opening.options.get("dir", "")
    where = f"to {place}" if place else "offline (hostler pull --trackers downloads it)"
    return Opened(
        url=place, note=f"{missing} is not set here: written {where}; {sends} sends it" if missing else ""
    )


def without(
    points: Sequence[Point], held: Set[Held], called: Callable[[str], str] = lambda name: name
) -> list[Point]:
    """The points that a tool does not hold yet; `called` is what it calls a metric."""
    if not held:
        return list(points)
    kept = (
        Point(p.step, p.time, {n: v for n, v in p.values.items() if (called(n), p.step) not in held})
        for p in points
    )
    return [point for point in kept if point.values]


def to_json(one: Opening | Closing) -> dict[str, Any]:
    return asdict(one)


def opening(record: Mapping[str, Any]) -> Opening:
    return Opening(**{**record, "tags": tuple(record["tags"])})


def closing(record: Mapping[str, Any]) -> Closing:
    return Closing(**{**record, "tags": tuple(record["tags"])})


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A config with one level, as tools show it: a.b.c."""
    record: dict[str, Any] = {}
    for name, value in config.items():
        if isinstance(value, Mapping) and value:
            record |= flat(value, f"{prefix}{name}.")
        else:
            record[f"{prefix}{name}"] = value
    return record
