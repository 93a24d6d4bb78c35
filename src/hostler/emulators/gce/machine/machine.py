"""A machine (an instance): its resource, and what the emulator knows beside it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hostler.emulators.gce.agenda import Entry
from hostler.emulators.gce.api.links import Scope, last
from hostler.emulators.gce.api.refusal import Failure
from hostler.emulators.gce.machine.board import Board
from hostler.emulators.gce.machine.guest import Guest
from hostler.emulators.gce.machine.metadata import MetadataServer
from hostler.emulators.gce.stock import Need

PROVISIONING, STAGING, RUNNING = "PROVISIONING", "STAGING", "RUNNING"
STOPPING, TERMINATED, REPAIRING = "STOPPING", "TERMINATED", "REPAIRING"
TAKING = (PROVISIONING, STAGING, RUNNING, STOPPING, REPAIRING)  # room on a host
ON = (STAGING, RUNNING, STOPPING)  # and money


class Cause(Enum):
    """Why a machine ends."""

    ASKED = "a request"
    GROUP = "its group deletes it"
    PREEMPTED = "compute.instances.preempted"
    HOST_ERROR = "compute.instances.hostError"
    DEADLINE = "compute.instances.terminate"
    GUEST = "compute.instances.guestTerminate"


@dataclass
class Machine:
    scope: Scope
    body: dict[str, Any]
    need: Need
    board: Board
    ends: float | None = None  # emulated moment of its time limit
    guest: Guest | None = None
    server: MetadataServer | None = None
    timers: list[Entry] = field(default_factory=list)
    boots: int = 0
    starting: Callable[[Failure | None], None] | None = None  # who waits for it to run
    when_off: list[Callable[[], None]] = field(default_factory=list)
    cause: Cause | None = None  # of its end

    @property
    def name(self) -> str:
        return str(self.body["name"])

    @property
    def zone(self) -> str:
        return self.scope.place

    @property
    def key(self) -> tuple[str, str]:
        return self.zone, self.name

    @property
    def path(self) -> str:
        return self.scope.of("instances", self.name)

    @property
    def status(self) -> str:
        return str(self.body["status"])

    @property
    def spot(self) -> bool:
        return self.need.spot

    @property
    def addresses(self) -> list[str]:
        """Its addresses, inside the network and outside."""
        interfaces = self.body["networkInterfaces"]
        outside = [access["natIP"] for one in interfaces for access in one.get("accessConfigs", [])]
        return [*(one["networkIP"] for one in interfaces), *outside]

    @property
    def disks(self) -> list[str]:
        """Names of those that go with it."""
        return [last(disk["source"]) for disk in self.body["disks"] if disk.get("autoDelete")]

    def cancel_timers(self) -> None:
        for entry in self.timers:
            entry.cancel()
        self.timers.clear()
