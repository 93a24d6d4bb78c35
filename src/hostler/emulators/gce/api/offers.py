"""Requests about what there is to be had: quotas, regions, zones, types of machines, accelerators, disks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from hostler.emulators.gce.api.call import Call
from hostler.emulators.gce.api.links import Scope, link, region_of, zonal
from hostler.emulators.gce.api.pages import aggregated, listing
from hostler.emulators.gce.api.refusal import not_found
from hostler.emulators.gce.catalog import (
    ACCELERATORS,
    REGIONS,
    ZONES,
    MachineType,
    machine_type,
    machine_types,
    zones_of,
)
from hostler.emulators.gce.clock import stamp
from hostler.emulators.gce.machine.board import EMAIL, NUMBER
from hostler.emulators.gce.stock import ALL_GPUS, PROJECT_LIMITS, REGION_LIMITS, gpu_metric
from hostler.emulators.gce.world import World

Body = dict[str, Any]
Make = Callable[[Scope, str], Body]
_BORN = 1388534400.0  # when all of this was created: long ago
_UNLISTED = ("NVIDIA_H100_GPUS",)  # a region's quotas have it only for spot and commitments
_DISKS = ("pd-standard", "pd-balanced", "pd-ssd", "hyperdisk-balanced")


def project(world: World, call: Call) -> Body:
    path = f"projects/{world.project}"
    used = {ALL_GPUS: sum(need.gpus() for need in world.taken()), "IMAGES": float(len(world.images))}
    return {
        **_fixed("project", path, world.project, NUMBER),
        "defaultServiceAccount": EMAIL,
        "commonInstanceMetadata": {"kind": "compute#metadata", "fingerprint": "AAAAAAAAAAA="},
        "quotas": [_quota(world, "", metric, used) for metric in PROJECT_LIMITS],
        "defaultNetworkTier": "PREMIUM",
        "xpnProjectStatus": "UNSPECIFIED_XPN_PROJECT_STATUS",
    }


def region(world: World, call: Call) -> Body:
    return _region(world, call.scope.place)


def regions(world: World, call: Call) -> Body:
    rows = [_region(world, name) for name in REGIONS]
    return listing("compute#regionList", f"projects/{world.project}/regions", rows, call.query)


def zone(world: World, call: Call) -> Body:
    return _zone(world, call.scope.place)


def zones(world: World, call: Call) -> Body:
    rows = [_zone(world, name) for name in ZONES]
    return listing("compute#zoneList", f"projects/{world.project}/zones", rows, call.query)


def machine_type_(world: World, call: Call) -> Body:
    found = machine_type(call.name)
    if found is None:
        raise not_found(call.scope.of("machineTypes", call.name))
    return _machine(call.scope, found)


def machine_types_(world: World, call: Call) -> Body:
    rows = [_machine(call.scope, one) for one in machine_types()]
    return listing("compute#machineTypeList", f"{call.scope.path}/machineTypes", rows, call.query)


def all_machine_types(world: World, call: Call) -> Body:
    by_zone = {
        f"zones/{name}": [_machine(_in(world, name), one) for one in machine_types()] for name in ZONES
    }
    path = f"projects/{world.project}/aggregated/machineTypes"
    return aggregated("compute#machineTypeAggregatedList", path, "machineTypes", by_zone, call.query)


def accelerator(world: World, call: Call) -> Body:
    if call.name not in ACCELERATORS:
        raise not_found(call.scope.of("acceleratorTypes", call.name))
    return _accelerator(call.scope, call.name)


def accelerators(world: World, call: Call) -> Body:
    rows = [_accelerator(call.scope, name) for name in ACCELERATORS]
    return listing("compute#acceleratorTypeList", f"{call.scope.path}/acceleratorTypes", rows, call.query)


def all_accelerators(world: World, call: Call) -> Body:
    by_zone = {
        f"zones/{name}": [_accelerator(_in(world, name), one) for one in ACCELERATORS] for name in ZONES
    }
    path = f"projects/{world.project}/aggregated/acceleratorTypes"
    return aggregated("compute#acceleratorTypeAggregatedList", path, "acceleratorTypes", by_zone, call.query)


def disk_type(world: World, call: Call) -> Body:
    if call.name not in _DISKS:
        raise not_found(call.scope.of("diskTypes", call.name))
    return _disk(call.scope, call.name)


def disk_types(world: World, call: Call) -> Body:
    rows = [_disk(call.scope, name) for name in _DISKS]
    return listing("compute#diskTypeList", f"{call.scope.path}/diskTypes", rows, call.query)


def _region(world: World, name: str) -> Body:
    used: dict[str, float] = {}
    for need in world.taken():
        for metric, amount in need.metrics().items() if region_of(need.zone) == name else ():
            used[metric] = used.get(metric, 0.0) + amount
    gpus = [gpu_metric(kind) for kind in ACCELERATORS]
    paid = [metric for metric in gpus if metric not in _UNLISTED]
    metrics = [*REGION_LIMITS, *paid, *(f"PREEMPTIBLE_{metric}" for metric in gpus)]
    return {
        **_fixed(
            "region", f"projects/{world.project}/regions/{name}", name, 1000 + list(REGIONS).index(name)
        ),
        "status": "UP",
        "zones": [link(_in(world, zone).path) for zone in zones_of(name)],
        "quotas": [_quota(world, name, metric, used) for metric in metrics],
    }


def _zone(world: World, name: str) -> Body:
    return {
        **_fixed("zone", _in(world, name).path, name, 2000 + ZONES.index(name)),
        "status": "UP",
        "region": link(f"projects/{world.project}/regions/{region_of(name)}"),
        "availableCpuPlatforms": ["Emulated"],
    }


def _machine(scope: Scope, one: MachineType) -> Body:
    fixed = _fixed(
        "machineType", scope.of("machineTypes", one.name), one.name, one.cpus * 1000000 + one.memory_mb
    )
    body: Body = {**fixed, "guestCpus": one.cpus, "memoryMb": one.memory_mb, "zone": scope.place}
    body |= {"isSharedCpu": one.name.startswith(("e2-mi", "e2-sm", "e2-me", "f1", "g1")), "imageSpaceGb": 0}
    body |= {
        "maximumPersistentDisks": 128,
        "maximumPersistentDisksSizeGb": "263168",
        "architecture": "X86_64",
    }
    if one.accelerator:
        body["accelerators"] = [
            {"guestAcceleratorType": one.accelerator, "guestAcceleratorCount": one.count},
        ]
    return body


def _accelerator(scope: Scope, name: str) -> Body:
    number = 9000 + list(ACCELERATORS).index(name)
    fixed = _fixed("acceleratorType", scope.of("acceleratorTypes", name), name, number)
    return {**fixed, "maximumCardsPerInstance": ACCELERATORS[name], "zone": link(scope.path)}


def _disk(scope: Scope, name: str) -> Body:
    fixed = _fixed("diskType", scope.of("diskTypes", name), name, 8000 + _DISKS.index(name))
    return {**fixed, "defaultDiskSizeGb": "100", "validDiskSize": "10GB-65536GB", "zone": link(scope.path)}


def _fixed(kind: str, path: str, name: str, identity: int) -> Body:
    return {
        "kind": f"compute#{kind}",
        "id": str(identity),
        "name": name,
        "creationTimestamp": stamp(_BORN),
        "description": name,
        "selfLink": link(path),
    }


def _quota(world: World, region: str, metric: str, used: Mapping[str, float]) -> Body:
    return {
        "metric": metric,
        "limit": world.stock.limit(region, metric),
        "usage": float(used.get(metric, 0.0)),
    }


def _in(world: World, zone: str) -> Scope:
    return zonal(world.project, zone)
