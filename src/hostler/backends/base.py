"""The seam to every backend: it only starts and stops workers.

`plan` is pure and printable: `--dry-run` shows exactly it. Callers ask for capabilities, never which
backend it is. A backend gets data (the store's URL is data) and returns data.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from hostler.spec.job import Resources
from hostler.spec.project import Fleet


@dataclass(frozen=True)
class Capabilities:
    restarts: bool  # the engine brings a lost worker back
    gangs: bool = False
    live_logs: bool = True
    billed: bool = False
    shares_disk: bool = False  # sees folders of the submitter's machine
    shared: bool = False  # others wait for its machines: a worker with nothing to do leaves


@dataclass(frozen=True)
class Launch:
    """What the workers of one launch are for."""

    store: str
    sweeps: tuple[str, ...] = ()
    python: str = "python3"
    cache: str | None = None
    project: str = ""  # whose workers they are
    runs: int = 0  # how many are open; 0: not known
    resources: Resources = field(default_factory=Resources)  # what one run takes
    logs: str = ""  # a folder that the workers' machines see, for what they print
    variables: Mapping[str, str] = field(default_factory=dict)  # never secrets
    script: str = ""  # a person's own batch script, as it is


@dataclass(frozen=True)
class Plan:
    """What will be started, word for word."""

    fleet: Fleet
    commands: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    script: str = ""  # what the commands read
    workers: int = 0  # how many will run at a time
    launch: Launch | None = None

    @property
    def text(self) -> str:
        lines = [*(f"# {note}" for note in self.notes), *(shlex.join(c) for c in self.commands)]
        return "\n".join([*lines, *(["", self.script] if self.script else [])])


@dataclass(frozen=True)
class WorkerInfo:
    id: str
    host: str
    alive: bool
    detail: str = ""  # for people
    count: int = 1  # workers it stands for: those of an array that still wait are one
    log: str = ""  # where what it prints is kept, if that is known


class Backend(Protocol):
    capabilities: Capabilities

    def plan(self, fleet: Fleet, launch: Launch) -> Plan:
        """What would be started. Pure."""

    def start(self, plan: Plan) -> Sequence[WorkerInfo]:
        """Start it; the workers go on when the caller is gone."""

    def list(self, fleet: Fleet) -> Sequence[WorkerInfo]:
        """All workers of the fleet, in one call."""

    def stop(self, fleet: Fleet, *, now: bool = False) -> Sequence[WorkerInfo]:
        """Ask them to save and leave, or end them now. Idempotent."""

    def logs(self, worker: WorkerInfo) -> bytes:
        """What the worker itself printed."""
