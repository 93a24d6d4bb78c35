"""A machine leaves: its power is cut, its folder goes, and the disks that are made to go with it."""

from __future__ import annotations

import shutil
from pathlib import Path

from hostler.emulators.gce.api.links import last
from hostler.emulators.gce.api.refusal import Failure
from hostler.emulators.gce.machine.machine import Machine
from hostler.emulators.gce.world import World

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
        _keep_content(world, machine)
        for name in [last(disk["source"]) for disk in machine.body["disks"]]:
            kept = world.disks.get((machine.zone, name))
            if kept is not None:
                kept.pop("users", None)
    shutil.rmtree(folder_of(world, machine), ignore_errors=True)


def _keep_content(world: World, machine: Machine) -> None:
    """A boot disk that stays when its machine goes has what was on it."""
    boot = last(machine.body["disks"][0]["source"])
    if (machine.zone, boot) in world.disks and folder_of(world, machine).is_dir():
        place = disk_folder(world, machine.zone, boot)
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(exist_ok=True)
        folder_of(world, machine).rename(place)


def drop_disk(world: World, zone: str, name: str) -> None:
    world.disks.pop((zone, name), None)
    world.meter.end("disk", zone, name)
    shutil.rmtree(disk_folder(world, zone, name), ignore_errors=True)


def disk_folder(world: World, zone: str, name: str) -> Path:
    """Folder with the content of a disk without a machine; a machine's disk is in the machine's folder."""
    return world.root / ".disks" / f"{zone}-{name}"


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
