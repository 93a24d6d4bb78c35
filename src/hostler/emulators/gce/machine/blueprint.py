"""Checks and completes a client's request into the resource of a machine or a template.

Says no where Google does: to a machine without a boot disk or network, to a GPU that should migrate, to spot
that should restart by itself, to two time limits at once.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Mapping
from typing import Any

from hostler.emulators.gce.api.links import Scope, after, last, link
from hostler.emulators.gce.api.refusal import Refusal, invalid, required
from hostler.emulators.gce.catalog import ACCELERATORS, MachineType, machine_type
from hostler.emulators.gce.stock import Need

_LABEL = re.compile(r"[a-z][-_a-z0-9]{0,62}")
_VALUE = re.compile(r"[-_a-z0-9]{0,63}")
_KEY = re.compile(r"[-_a-zA-Z0-9]{1,128}")
VALUE_MAX, METADATA_MAX = 256 * 1024, 512 * 1024
_GPU_NEEDS = "Instances with guest accelerators do not support live migration."

Body = dict[str, Any]


def check_properties(given: Mapping[str, Any], where: str = "resource") -> None:
    """Checks the properties that templates and machines share."""
    kind = check_machine_type(given, where)
    if not given.get("networkInterfaces"):
        raise invalid(f"{where}.networkInterfaces", "", "At least one network interface is required.")
    disks = given.get("disks") or []
    if not disks or not disks[0].get("boot"):
        raise invalid(f"{where}.disks", "", "Boot disk must be specified.")
    for number, disk in enumerate(disks):
        _check_disk(disk, f"{where}.disks[{number}]")
    check_labels(given.get("labels", {}), f"{where}.labels")
    check_metadata(given.get("metadata", {}), f"{where}.metadata")
    check_scheduling(given.get("scheduling", {}), bool(accelerators(given, kind)), f"{where}.scheduling")


def check_machine_type(given: Mapping[str, Any], where: str) -> MachineType:
    named = given.get("machineType")
    if not named:
        raise required(f"{where}.machineType")
    found = machine_type(last(named))
    if found is None:
        raise invalid(f"{where}.machineType", named, "The referenced resource does not exist.")
    return found


def check_labels(labels: Mapping[str, str], where: str) -> None:
    for name, value in labels.items():
        if not _LABEL.fullmatch(name) or not _VALUE.fullmatch(str(value)):
            raise invalid(
                where, f"{name}={value}", "Label keys and values take small letters, digits, - and _."
            )


def check_metadata(metadata: Mapping[str, Any], where: str) -> None:
    items = metadata.get("items", [])
    names = [item.get("key", "") for item in items]
    if len(set(names)) < len(names):
        raise invalid(f"{where}.items", "", "Metadata has duplicate keys.")
    for item in items:
        if not _KEY.fullmatch(item.get("key", "")):
            raise invalid(
                f"{where}.items.key", item.get("key"), "Metadata keys take letters, digits, - and _."
            )
    sizes = [len(str(item.get("value", "")).encode()) for item in items]
    if max(sizes, default=0) > VALUE_MAX or sum(sizes) > METADATA_MAX:
        raise invalid(f"{where}.items", "", "Metadata is too large: 256 KB a value, 512 KB together.")


def check_scheduling(given: Mapping[str, Any], gpus: bool, where: str) -> None:
    spot = given.get("provisioningModel") == "SPOT" or given.get("preemptible", False)
    if spot and given.get("automaticRestart"):
        raise invalid(
            f"{where}.automaticRestart", "true", "Spot and preemptible machines cannot restart by themselves."
        )
    if spot and given.get("onHostMaintenance") == "MIGRATE":
        raise invalid(
            f"{where}.onHostMaintenance", "MIGRATE", "Spot and preemptible machines cannot migrate."
        )
    if gpus and not spot and given.get("onHostMaintenance", "MIGRATE") != "TERMINATE":
        raise Refusal(400, "invalid", _GPU_NEEDS)
    if given.get("terminationTime") and given.get("maxRunDuration"):
        raise invalid(where, "", "Only one of terminationTime and maxRunDuration can be set.")
    limited = spot or given.get("terminationTime") or given.get("maxRunDuration")
    if given.get("instanceTerminationAction") and not limited:
        text = "It takes a spot machine or a time limit."
        raise invalid(f"{where}.instanceTerminationAction", given["instanceTerminationAction"], text)


def accelerators(given: Mapping[str, Any], kind: MachineType) -> tuple[tuple[str, int], ...]:
    """Accelerators asked for, or those the machine type brings."""
    asked = [
        (last(accelerator.get("acceleratorType", "")), int(accelerator.get("acceleratorCount", 1)))
        for accelerator in given.get("guestAccelerators", [])
    ]
    for name, count in asked:
        if count > ACCELERATORS.get(name, 0):
            text = "The accelerator does not exist, or not so many of it on one machine."
            raise invalid("resource.guestAccelerators", f"{name}:{count}", text)
    return tuple(asked) or (((kind.accelerator, kind.count),) if kind.accelerator else ())


def draw(scope: Scope, given: Mapping[str, Any], identity: str, address: int) -> tuple[Body, Need]:
    """The resource of a machine in its first state, and what it takes."""
    body = copy.deepcopy(dict(given))
    kind = check_machine_type(body, "resource")
    zone = after(body["machineType"], "zones")
    if zone and zone != scope.place:
        raise invalid("resource.machineType", body["machineType"], "The machine type is of another zone.")
    body["machineType"] = link(scope.of("machineTypes", kind.name))
    scheduling = full_scheduling(body.get("scheduling", {}))
    gpus = accelerators(body, kind)
    body |= {
        "kind": "compute#instance",
        "id": identity,
        "scheduling": scheduling,
        "status": "PROVISIONING",
        "cpuPlatform": "Emulated",
        "zone": link(scope.path),
        "selfLink": link(scope.of("instances", body["name"])),
        "networkInterfaces": _interfaces(body["networkInterfaces"], scope, address),
        "deletionProtection": bool(body.get("deletionProtection", False)),
    }
    if gpus:
        types = scope.path + "/acceleratorTypes/"
        body["guestAccelerators"] = [
            {"acceleratorType": link(types + name), "acceleratorCount": count} for name, count in gpus
        ]
    return body, Need(
        scope.place, kind, scheduling["provisioningModel"] == "SPOT", gpus, disk_gb(body["disks"])
    )


def full_scheduling(given: Mapping[str, Any]) -> Body:
    spot = given.get("provisioningModel") == "SPOT" or bool(given.get("preemptible", False))
    filled = {
        "automaticRestart": not spot,
        "onHostMaintenance": "TERMINATE" if spot else "MIGRATE",
        "preemptible": spot,
        "provisioningModel": "SPOT" if spot else "STANDARD",
        **given,
    }
    if spot:
        filled |= {"preemptible": True, "provisioningModel": "SPOT"}
        filled.setdefault("instanceTerminationAction", "STOP")
    return filled


def disk_gb(disks: list[Body]) -> float:
    return sum(float(size_of(disk)) for disk in disks)


def size_of(disk: Mapping[str, Any]) -> str:
    made = disk.get("initializeParams", {})
    return str(made.get("diskSizeGb") or disk.get("diskSizeGb") or 10)


def _check_disk(disk: Mapping[str, Any], where: str) -> None:
    made = disk.get("initializeParams", {})
    if (
        not disk.get("source")
        and disk.get("boot")
        and not (made.get("sourceImage") or made.get("sourceSnapshot"))
    ):
        raise invalid(f"{where}.initializeParams.sourceImage", "", "A boot disk needs an image.")
    size = str(made.get("diskSizeGb") or disk.get("diskSizeGb") or 10)
    if not size.isdigit() or not 1 <= int(size) <= 65536:
        raise invalid(
            f"{where}.initializeParams.diskSizeGb", size, "Disk size must be between 1 and 65536 GB."
        )
    check_labels(made.get("labels", {}), f"{where}.initializeParams.labels")


def _interfaces(given: list[Body], scope: Scope, address: int) -> list[Body]:
    """With addresses, of this very machine, inside and outside: each has its own."""
    low = f"{address // 250 % 250}.{address % 250 + 2}"
    network = link(f"projects/{scope.project}/global/networks/default")
    filled = []
    for number, record in enumerate(given):
        outside = [
            {"kind": "compute#accessConfig", "type": "ONE_TO_ONE_NAT", "name": "external-nat", **config}
            | {"natIP": f"127.77.{low}"}
            for config in record.get("accessConfigs", [])
        ]
        fixed = {"kind": "compute#networkInterface", "name": f"nic{number}", "networkIP": f"127.78.{low}"}
        filled.append(
            {"network": network, **record, **fixed, **({"accessConfigs": outside} if outside else {})}
        )
    return filled
