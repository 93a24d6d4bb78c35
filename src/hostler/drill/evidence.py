"""Evidence of a drilled run: metrics, files, lines, and states of its processes. Frozen data."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path

from hostler.drill.fingerprint import Marks
from hostler.frozen import dataclass

Curve = Mapping[int, float]  # step → value


@dataclass(frozen=True)
class Sight:
    """State of a process as it printed a line (`line`) or began a training step (`step`)."""

    kind: str
    key: str
    marks: Marks


@dataclass(frozen=True)
class DrillAttempt:
    """An attempt at the run."""

    number: int
    seconds: float = 0.0
    killed: bool = False
    at_edge: bool = False  # its saves came so closely that the machine's load decides which are caught
    restored: str = ""  # the checkpoint it was given
    steps: tuple[int, ...] = ()  # as it logged them, one after the other
    sights: tuple[Sight, ...] = ()

    @property
    def opened(self) -> tuple[str, ...]:
        """Files of its checkpoint folder that it read, as far as can be seen."""
        return tuple(s.key for s in self.sights if s.kind == "open")

    @property
    def worked(self) -> bool:
        """Whether it was seen to do anything."""
        return bool(self.steps or self.at_lines() or self.at_steps())

    def at_lines(self) -> list[Sight]:
        return [s for s in self.sights if s.kind == "line"]

    def at_steps(self) -> list[Sight]:
        return [s for s in self.sights if s.kind == "step"]


@dataclass(frozen=True)
class Evidence:
    """Evidence of a run, from its first attempt to its end."""

    state: str
    failure: str = ""
    joined: bool = False  # it uses the library
    curves: Mapping[str, Curve] = field(default_factory=dict)
    lines: tuple[str, ...] = ()
    files: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # name → part → what is in it
    tries: tuple[DrillAttempt, ...] = ()

    @property
    def kills(self) -> int:
        return sum(attempt.killed for attempt in self.tries)

    @property
    def seconds(self) -> float:
        return sum(attempt.seconds for attempt in self.tries)

    @property
    def first(self) -> DrillAttempt:
        return self.tries[0]

    def resumed(self) -> list[DrillAttempt]:
        """Attempts that were given a checkpoint."""
        return [attempt for attempt in self.tries[1:] if attempt.restored]

    def steps_done(self) -> int:
        return sum(len(attempt.steps) for attempt in self.tries)


def sights(folder: Path, attempt: int) -> tuple[Sight, ...]:
    """Sights of an attempt's main process: the one of rank 0 that was seen most."""
    sightses = [_read(path) for path in sorted(folder.glob(f"{attempt}-0-*.jsonl"))]
    return next(iter(sorted(map(tuple, sightses), key=len, reverse=True)), ())


def of_lines(lines: Iterable[str]) -> list[Sight]:
    """A line cut short, because its writer was killed inside it, is not one."""
    found = []
    for line in lines:
        try:
            record = json.loads(line)
        except ValueError:
            continue
        found.append(Sight(record["kind"], record["key"], record["marks"]))
    return found


def _read(path: Path) -> Sequence[Sight]:
    return of_lines(path.read_text(errors="replace").splitlines())
