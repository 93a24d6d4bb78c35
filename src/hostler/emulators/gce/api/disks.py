"""Disks: made with their machines or by themselves, gone with them or by request: `disks.*` of the API."""

from __future__ import annotations

from typing import Any

from hostler.emulators.gce.api.call import Call, begin
from hostler.emulators.gce.api.images import image_at
from hostler.emulators.gce.api.links import Scope, after, check_name, last, link
from hostler.emulators.gce.api.operations import at_once
from hostler.emulators.gce.api.pages import aggregated, listing
from hostler.emulators.gce.api.refusal import exists, in_use, not_found
from hostler.emulators.gce.catalog import ZONES
from hostler.emulators.gce.clock import stamp
from hostler.emulators.gce.machine import contents, leaving
from hostler.emulators.gce.machine.blueprint import size_of
from hostler.emulators.gce.meter import Usage
from hostler.emulators.gce.world import World, fingerprint

Body = dict[str, Any]


def attach(world: World, scope: Scope, machine: str, asked: list[Body]) -> list[Body]:
    """The machine's own view of its disks; new ones are made. Refused as a whole, or done as a whole."""
    for number, record in enumerate(asked):
        _check(world, scope, record, _name(record, machine, number))
    return [_attached(world, scope, machine, one, number) for number, one in enumerate(asked)]


def _check(world: World, scope: Scope, one: Body, name: str) -> None:
    there = world.disks.get((scope.place, name))
    if one.get("source"):
        if there is None:
            raise not_found(scope.of("disks", name))
        if there.get("users"):
            raise in_use("disk", scope.of("disks", name), there["users"][0])
        return
    if there is not None:
        raise exists(scope.of("disks", name))
    image = one.get("initializeParams", {}).get("sourceImage")
    if image:
        image_at(world, image)


def _attached(world: World, scope: Scope, machine: str, one: Body, number: int) -> Body:
    name = _name(one, machine, number)
    if not one.get("source"):
        made = one.get("initializeParams", {})
        _make(world, scope, name, {**made, "sizeGb": size_of(one)})
    disk = world.disks[scope.place, name]
    disk["users"] = [link(scope.of("instances", machine))]
    return {
        "kind": "compute#attachedDisk",
        "autoDelete": bool(one.get("autoDelete", False)),
        "boot": bool(one.get("boot", False)),
        "deviceName": one.get("deviceName") or f"persistent-disk-{number}",
        "diskSizeGb": disk["sizeGb"],
        "index": number,
        "interface": "SCSI",
        "mode": one.get("mode", "READ_WRITE"),
        "source": disk["selfLink"],
        "type": "PERSISTENT",
    }


def _name(one: Body, machine: str, number: int) -> str:
    if one.get("source"):
        return last(one["source"])
    named = one.get("initializeParams", {}).get("diskName")
    return str(named or (machine if one.get("boot") else f"{machine}-{number}"))


def _make(world: World, scope: Scope, name: str, asked: Body) -> Body:
    kind = last(asked.get("diskType") or asked.get("type") or "pd-standard")
    body: Body = {
        "kind": "compute#disk",
        "id": world.operations.identity(),
        "name": check_name(name),
        "sizeGb": str(asked["sizeGb"]),
        "type": link(scope.of("diskTypes", kind)),
        "status": "READY",
        "creationTimestamp": stamp(),
        "zone": link(scope.path),
        "selfLink": link(scope.of("disks", name)),
        "labelFingerprint": fingerprint(),
        **({"labels": dict(asked["labels"])} if asked.get("labels") else {}),
        **({"sourceImage": link(image_at(world, asked["sourceImage"]))} if asked.get("sourceImage") else {}),
    }
    world.disks[scope.place, name] = body
    labels = tuple(sorted(asked.get("labels", {}).items()))
    world.meter.begin(Usage("disk", name, scope.place, kind, False, (), float(body["sizeGb"]), labels, 0))
    return body


def insert(world: World, call: Call) -> Body:
    name = check_name(call.body.get("name"))
    if (call.scope.place, name) in world.disks:
        raise exists(call.scope.of("disks", name))
    image = call.query.get("sourceImage") or call.body.get("sourceImage")
    source = _source(world, call) if call.body.get("sourceDisk") else None
    asked = {
        **call.body,
        "sizeGb": call.body.get("sizeGb") or (source["sizeGb"] if source else "10"),
        **({"sourceImage": image} if image else {}),
    }
    made = _make(world, call.scope, name, asked)
    if source is not None:
        made["sourceDisk"] = source["selfLink"]
        contents.into_disk(world, made, source)
    return begin(world, call, call.scope.of("disks", name), made["id"], at_once(lambda: None))


def _source(world: World, call: Call) -> Body:
    """The disk of which another one is made: of the same zone, and on a machine or not."""
    given = str(call.body["sourceDisk"])
    record = world.disks.get((after(given, "zones") or call.scope.place, last(given)))
    if record is None:
        raise not_found(given)
    return record


def find(world: World, call: Call) -> Body:
    record = world.disks.get((call.scope.place, call.name))
    if record is None:
        raise not_found(call.scope.of("disks", call.name))
    return record


def list_(world: World, call: Call) -> Body:
    rows = [body for (zone, _), body in world.disks.items() if zone == call.scope.place]
    return listing("compute#diskList", f"{call.scope.path}/disks", rows, call.query)


def aggregated_list(world: World, call: Call) -> Body:
    by_zone: dict[str, list[Body]] = {f"zones/{zone}": [] for zone in ZONES}
    for (zone, _), body in world.disks.items():
        by_zone[f"zones/{zone}"].append(body)
    path = f"projects/{world.project}/aggregated/disks"
    return aggregated("compute#diskAggregatedList", path, "disks", by_zone, call.query)


def delete(world: World, call: Call) -> Body:
    disk = find(world, call)
    if disk.get("users"):
        raise in_use("disk", call.scope.of("disks", call.name), disk["users"][0])

    def act() -> None:
        leaving.drop_disk(world, call.scope.place, call.name)

    return begin(world, call, call.scope.of("disks", call.name), disk["id"], at_once(act))
