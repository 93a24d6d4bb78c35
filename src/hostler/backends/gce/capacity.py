"""The groups of a fleet of VMs, and the size of one of them. Pure but for the table of machine types."""

from __future__ import annotations

from hostler.backends.capacity import MachineGroup, Size
from hostler.backends.gce import groups, prices, shape
from hostler.backends.gce.wish import chosen
from hostler.spec.project import Fleet


def split(fleet: Fleet, count: int) -> tuple[tuple[MachineGroup, ...], tuple[MachineGroup, ...]]:
    """Groups that are made at once, and those that stand in for spot ones."""
    vm_shape = shape.shape(chosen.narrowed(fleet))
    made = groups.split(vm_shape, fleet.name, count)
    return made, groups.instead(made) if vm_shape.spot == "prefer" else ()


def size(fleet: Fleet) -> Size | None:
    """Size of a machine of the fleet; None for a type that the table does not have."""
    fleet = chosen.narrowed(fleet)
    machine = str(fleet.options.get("machine") or "")
    kind = prices.own_table().machines.get(machine)
    if kind is None:
        return None
    name, count = prices.own_gpus(machine)
    if given := str(fleet.options.get("gpu") or ""):
        name, _, number = given.partition(":")
        count = float(number or 1)
    gpu = shape.GPUS.get(name.upper())
    return Size(kind.vcpus, int(kind.memory * shape.GIB), int(count), (gpu.memory if gpu else 0) * shape.GIB)
