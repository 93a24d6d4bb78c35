"""A machine leaves: its power is cut, its folder goes, and the disks that are made to go with it."""

from __future__ import annotations

import shutil
from pathlib import Path

from hostler.testing.gce.links import last
from hostler.testing.gce.machine import Machine
from hostler.testing.gce.refusal import Failure
from hostler.testing.gce.world import World

GONE = Failure("RESOURCE_NOT_FOUND", "The instance was deleted before it was there.", 404)


def discard(world: World, machine: Machine) -> None:
    """The machine is gone, and the disks that go with it."""
    machine.cancel_timers()
    cut_power(machine)
    tell_started(machine, GONE)
    world.meter.end("machine", *machine.key)
    if world.machines.get(machine.key) is machine:
        del world.machines[machine.key]
        for disk in machine.disks:
            drop_disk(world, machine.zone, disk)
        for name in [last(disk["source"]) for disk in machine.body["disks"]]:
            kept = world.disks.get((machine.zone, name))
            if kept is not None:
                kept.pop("users", None)
    shutil.rmtree(folder_of(world, machine), ignore_errors=True)


def drop_disk(world: World, zone: str, name: str) -> None:
    world.disks.pop((zone, name), None)
    world.meter.end("disk", zone, name)


def folder_of(world: World, machine: Machine) -> Path:
    return world.root / f"{machine.name}-{machine.body['id']}"


def cut_power(machine: Machine) -> None:
    guest, machine.guest = machine.guest, None
    server, machine.server = machine.server, None
    if server is not None:
        server.close()
    if guest is not None:
        guest.close()


def tell_started(machine: Machine, failure: Failure | None) -> None:
    """Tell who waits for it to run."""
    waiting, machine.starting = machine.starting, None
    if waiting is not None:
        waiting(failure)
