"""Everything the emulator holds, under one lock."""

from __future__ import annotations

import base64
import random
import secrets
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostler.emulators.gce.agenda import Agenda
from hostler.emulators.gce.api.links import Scope
from hostler.emulators.gce.api.operations import Operations
from hostler.emulators.gce.clock import Clock
from hostler.emulators.gce.diary import Diary
from hostler.emulators.gce.machine.group import Group
from hostler.emulators.gce.machine.machine import TAKING, Machine
from hostler.emulators.gce.meter import Meter
from hostler.emulators.gce.pace import AtDeadline, Pace
from hostler.emulators.gce.stock import Need, Stock
from hostler.emulators.gcs.tokens import Tokens


@dataclass
class Template:
    body: dict[str, Any]
    ends: float | None  # emulated moment of its machines' time limit


@dataclass
class World:
    project: str
    root: Path  # the machines' disks are folders in it
    clock: Clock
    pace: Pace
    at_deadline: AtDeadline
    tokens: Tokens
    chance: random.Random
    guest_env: Mapping[str, str]
    sshd: bool = False  # whether a machine has one
    speeds: dict[str, float] = field(default_factory=dict)  # of machine types; 1 where none is given
    lock: threading.RLock = field(default_factory=threading.RLock)
    stock: Stock = field(default_factory=Stock)
    machines: dict[tuple[str, str], Machine] = field(default_factory=dict)  # (zone, name)
    disks: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    templates: dict[tuple[Scope, str], Template] = field(default_factory=dict)
    images: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[tuple[Scope, str], Group] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.agenda = Agenda(self.clock, self.lock)
        self.operations = Operations(self.agenda, self.pace)
        self.meter = Meter(self.clock)
        self.diary = Diary(self.clock)

    def taken(self, *, but: Machine | None = None) -> Iterator[Need]:
        """Needs of the existing machines."""
        return (
            machine.need
            for machine in self.machines.values()
            if machine is not but and machine.status in TAKING
        )

    def machine_named(self, name: str) -> Machine:
        """By its name alone, which is unique in most scenes."""
        machines = [machine for machine in self.machines.values() if machine.name == name]
        if len(machines) != 1:
            raise LookupError(f"there are {len(machines)} machines named {name}")
        return machines[0]


def fingerprint() -> str:
    return base64.b64encode(secrets.token_bytes(8)).decode()
