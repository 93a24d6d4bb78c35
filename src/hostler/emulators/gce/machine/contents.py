"""Contents of boot disks: a machine's folder, copied to and from images and disks.

What belongs to one machine alone (its serial port, scripts, temporary files and host keys) is not copied.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from hostler.emulators.gce.api.links import last
from hostler.emulators.gce.machine.leaving import disk_folder, folder_of
from hostler.emulators.gce.machine.machine import Machine
from hostler.emulators.gce.world import World

_OWN = ("serial.log", "scripts", "run", "tmp", "bin", "ssh")  # in a machine's folder itself


def into_image(world: World, name: str, disk: dict[str, Any]) -> None:
    _copy(_folder(world, disk), image_folder(world, name))


def into_disk(world: World, disk: dict[str, Any], source: dict[str, Any]) -> None:
    _copy(_folder(world, source), disk_folder(world, last(disk["zone"]), disk["name"]))


def furnish(world: World, machine: Machine) -> None:
    """Before the first boot of a machine: what its boot disk came with."""
    disk = world.disks.get((machine.zone, last(machine.body["disks"][0]["source"])))
    if disk is None:
        return
    own = disk_folder(world, machine.zone, disk["name"])
    _copy(own if own.exists() else _image_of(world, disk), folder_of(world, machine))


def forget_image(world: World, name: str) -> None:
    world.images.pop(name, None)
    shutil.rmtree(image_folder(world, name), ignore_errors=True)


def image_folder(world: World, name: str) -> Path:
    return world.root / ".images" / name


def _image_of(world: World, disk: dict[str, Any]) -> Path:
    return image_folder(world, last(disk.get("sourceImage", "none/none")))


def _folder(world: World, disk: dict[str, Any]) -> Path:
    """Where a disk's content is: with the machine that has it, or in a folder of its own."""
    zone, users = last(disk["zone"]), [last(user) for user in disk.get("users", [])]
    machine = next((one for one in world.machines.values() if one.zone == zone and one.name in users), None)
    if machine is not None and last(machine.body["disks"][0]["source"]) == disk["name"]:
        return folder_of(world, machine)
    own = disk_folder(world, zone, disk["name"])
    return own if own.exists() else _image_of(world, disk)


def _copy(source: Path, target: Path) -> None:
    def own(folder: str, names: list[str]) -> list[str]:
        return [name for name in names if Path(folder) == source and name in _OWN]

    if source.is_dir():
        shutil.copytree(source, target, symlinks=True, ignore=own, dirs_exist_ok=True)
