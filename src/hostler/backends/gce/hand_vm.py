"""A VM for hand work: outside of groups, so it is not brought back; it removes itself when idle.

Zones are tried in the order in which they are named. The body is pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hostler.backends.base import Launch
from hostler.backends.capacity import REGION, ZONE
from hostler.backends.gce import names, plans, shape, template
from hostler.backends.gce.client import GceClient, GceRefusal
from hostler.backends.gce.names import KEPT, owner_of
from hostler.errors import CloudUnavailable
from hostler.spec.project import Fleet

Body = dict[str, Any]


def body(fleet: Fleet, launch: Launch, project: str, zone: str, *, spot: bool, idle: float) -> Body:
    vm_shape, owner = shape.shape(fleet), owner_of(fleet)
    record = {**plans.settings(fleet, launch, project, (), ()), "worker": [], "idle": idle}
    record |= {"launch": launch.generation}
    made = template.properties(owner, vm_shape, record, spot=spot)
    url = f"zones/{zone}"
    for disk in made["disks"]:
        params = disk["initializeParams"]
        disk["initializeParams"] = {**params, "diskType": f"{url}/diskTypes/{params['diskType']}"}
    for gpu in made.get("guestAccelerators", ()):
        gpu["acceleratorType"] = f"{url}/acceleratorTypes/{gpu['acceleratorType']}"
    described = owner.describe(KEPT)
    machine = f"{url}/machineTypes/{vm_shape.machine}"
    return {**made, "name": owner.name(KEPT), "description": described, "machineType": machine}


def make(
    client: GceClient,
    fleet: Fleet,
    launch: Launch,
    idle: float,
    say: Callable[[str], None] = lambda line: None,
) -> str:
    """The path of the VM, made in the first zone that has one; one that is there already is as good."""
    vm_shape, owner = shape.shape(fleet), owner_of(fleet)
    name = owner.name(KEPT)
    for zone in vm_shape.zones:
        if there := client.find(f"zones/{zone}/instances/{name}"):
            if not owner.owns(there):
                raise names.taken(there, client.project)
            return f"zones/{zone}/instances/{name}"
    out = list[str]()
    for spot in (True, False) if vm_shape.spot == "prefer" else (bool(vm_shape.spot),):
        for zone in vm_shape.zones:
            try:
                client.insert(
                    f"zones/{zone}/instances", body(fleet, launch, client.project, zone, spot=spot, idle=idle)
                )
                return f"zones/{zone}/instances/{name}"
            except GceRefusal as error:
                if error.why.then not in (ZONE, REGION):
                    raise
                out.append(f"{zone}: {error.why.words}")
                say(out[-1])
    raise CloudUnavailable(
        f"no VM is available for hand work: {'; '.join(out)}",
        "name other zones or another machine, or try later",
    )
