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
    gangs: bool = False  # each worker that is asked for comes with all nodes of a run
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
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)  # secrets are among them
    folders: Mapping[str, str] = field(default_factory=dict)  # host → the store, where it has it as a folder
    wheels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # host → files it needs besides
    machines: Mapping[str, MachineInfo] = field(default_factory=dict)  # those that answered, by host
    skip: frozenset[str] = frozenset()  # hosts that have their workers already
    runs: int = 0  # how many are open; 0: not known
    resources: Resources = field(default_factory=Resources)  # what one run takes
    logs: str = ""  # a folder for what the workers print; relative where their machines are elsewhere
    library: str = ""  # what a worker's PYTHONPATH must be; '' where hostler is installed
    script: str = ""  # a person's own batch script, as it is


@dataclass(frozen=True)
class Plan:
    """What will be started, word for word."""

    fleet: Fleet
    commands: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    wheels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    script: str = ""  # what the commands read
    workers: int = 0  # how many will run at a time
    launch: Launch | None = None

    @property
    def text(self) -> str:
        lines = [*(f"# {note}" for note in self.notes), *(shlex.join(c) for c in self.commands)]
        return "\n".join([*lines, *(["", self.script] if self.script else [])])


@dataclass(frozen=True)
class WorkerInfo:
    """One worker; or a machine that could not be asked: not alive, and `detail` says why."""

    id: str
    host: str
    alive: bool
    detail: str = ""  # for people
    count: int = 1  # workers it stands for: those of an array that still wait are one
    log: str = ""  # where what it prints is kept, if that is known
    launch: str = ""  # the id that `start` gave to what it is a part of, if that is another
    sweeps: tuple[str, ...] = ()  # the only ones it takes runs of, if that is known


@dataclass(frozen=True)
class Question:
    """What a machine is asked besides what it is."""

    path: str = ""  # does it see this file?
    store: str = ""  # can it write to this store?
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    wheels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class MachineInfo:
    """What a machine answered; `problem` if it did not."""

    host: str
    problem: str = ""
    hint: str = ""
    python: str = ""
    platform: tuple[str, ...] = ()  # system, processor, C library and its version
    cpus: int = 0
    gpus: tuple[str, ...] = ()  # their names
    sees: bool = False
    unreached: str = ""  # why it cannot write to the store
    home: str = ""
    exe: str = ""  # its Python
    library: str = ""  # the folder where hostler lies there
    cache: str = ""


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

    def survey(self, fleet: Fleet, question: Question) -> Sequence[MachineInfo]:
        """What the machines of the fleet are, asked all at once; none where they are not known yet."""
