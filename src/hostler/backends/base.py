"""The seam to every backend: it only starts and stops workers.

`plan` is pure and printable: `--dry-run` shows exactly it. Callers ask for capabilities, never which
backend it is. A backend gets data (the store's URL is data) and returns data.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from hostler.spec.project import Fleet


@dataclass(frozen=True)
class Capabilities:
    restarts: bool  # the engine brings a lost worker back
    gangs: bool = False
    live_logs: bool = True
    billed: bool = False
    shares_disk: bool = False  # sees folders of the submitter's machine


@dataclass(frozen=True)
class Launch:
    """What the workers of one launch are for."""

    store: str
    sweeps: tuple[str, ...] = ()
    python: str = "python3"
    cache: str | None = None


@dataclass(frozen=True)
class Plan:
    """What will be started, word for word."""

    fleet: Fleet
    commands: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return "\n".join([*(f"# {note}" for note in self.notes), *(shlex.join(c) for c in self.commands)])


@dataclass(frozen=True)
class WorkerInfo:
    id: str
    host: str
    alive: bool
    detail: str = ""


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
