"""Requests about machines: `instances.*` of the API."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

from hostler.emulators.gce import diary
from hostler.emulators.gce.api.call import Call, begin
from hostler.emulators.gce.api.disks import attach
from hostler.emulators.gce.api.links import Scope, check_name, link, path_of
from hostler.emulators.gce.api.operations import Finish, Work, at_once
from hostler.emulators.gce.api.pages import aggregated, listing
from hostler.emulators.gce.api.refusal import Refusal, exists, invalid, not_found, stale
from hostler.emulators.gce.api.templates import template_at
from hostler.emulators.gce.catalog import ZONES
from hostler.emulators.gce.clock import stamp
from hostler.emulators.gce.machine import leaving, life
from hostler.emulators.gce.machine.blueprint import check_labels, check_metadata, check_properties, draw
from hostler.emulators.gce.machine.board import Board
from hostler.emulators.gce.machine.guest import SERIAL
from hostler.emulators.gce.machine.machine import RUNNING, TERMINATED, Cause, Machine
from hostler.emulators.gce.world import World, fingerprint

Body = dict[str, Any]


def insert(world: World, call: Call) -> Body:
    values, ends = dict(call.body), None
    if call.query.get("sourceInstanceTemplate"):
        template = template_at(world, call.query["sourceInstanceTemplate"])
        values, ends = {**template.body["properties"], **values}, template.ends
    machine = add(world, call.scope, values, ends)
    work = provisioning(world, machine)
    return begin(world, call, machine.path, machine.body["id"], work, delay=world.pace.provision)


def add(world: World, scope: Scope, given: Mapping[str, Any], ends: float | None = None) -> Machine:
    """A machine that is there from now on, though it has no place on a host yet."""
    name = check_name(given.get("name"))
    check_properties(given)
    if (scope.place, name) in world.machines:
        raise exists(scope.of("instances", name))
    ends = _time_limit(world, given, ends)
    identity = world.operations.identity()
    body, need = draw(scope, given, identity, int(identity) % 60000)
    body |= {"creationTimestamp": stamp(), "fingerprint": fingerprint(), "labelFingerprint": fingerprint()}
    body["metadata"] = {**body.get("metadata", {}), "kind": "compute#metadata", "fingerprint": fingerprint()}
    body["tags"] = {**body.get("tags", {}), "fingerprint": fingerprint()}
    body["disks"] = attach(world, scope, name, body["disks"])
    board = Board(threading.Condition(world.lock), heard=lambda where, said: _hear(world, name, where, said))
    machine = Machine(scope, body, need, board, ends)
    world.machines[machine.key] = machine
    return machine


def _hear(world: World, name: str, where: str, said: str) -> None:
    if where == diary.STATE:
        world.diary.note(diary.SAID, name, said)


def _time_limit(world: World, given: Mapping[str, Any], ends: float | None) -> float | None:
    """`ends` if a template has fixed it already; refused if it is past, unless that is to be tried."""
    until = given.get("scheduling", {}).get("terminationTime")
    if until and ends is None:
        ends = world.clock.moment(until)
        past = ends <= world.clock.now()
    else:
        past = life.is_over(world, ends)
    if past:
        raise invalid("resource.scheduling.terminationTime", until, "It must be in the future.")
    return ends


def provisioning(world: World, machine: Machine, *, new: bool = True) -> Work:
    def work(finish: Finish) -> None:
        life.provision(world, machine, finish, new=new)

    return work


def find(world: World, call: Call) -> Machine:
    machine = world.machines.get((call.scope.place, call.name))
    if machine is None:
        raise not_found(call.scope.of("instances", call.name))
    return machine


def get(world: World, call: Call) -> Body:
    return find(world, call).body


def list_(world: World, call: Call) -> Body:
    rows = [machine.body for machine in world.machines.values() if machine.zone == call.scope.place]
    return listing("compute#instanceList", f"{call.scope.path}/instances", rows, call.query)


def aggregated_list(world: World, call: Call) -> Body:
    by_zone: dict[str, list[Body]] = {f"zones/{zone}": [] for zone in ZONES}
    for machine in world.machines.values():
        by_zone[f"zones/{machine.zone}"].append(machine.body)
    path = f"projects/{world.project}/aggregated/instances"
    return aggregated("compute#instanceAggregatedList", path, "instances", by_zone, call.query)


def delete(world: World, call: Call) -> Body:
    machine = find(world, call)
    if machine.body["deletionProtection"]:
        text = f"Invalid resource usage: 'The instance {call.name} is protected against deletion'."
        raise Refusal(400, "invalidResourceUsage", text)
    return begin(world, call, machine.path, machine.body["id"], removal(world, machine, Cause.ASKED))


def removal(world: World, machine: Machine, cause: Cause) -> Work:
    def work(finish: Finish) -> None:
        def then() -> None:
            finish(
                None
            )  # its end is when it was off, not when its folder is gone; the lock is held meanwhile
            if world.machines.get(machine.key) is machine:
                leaving.discard(world, machine)

        life.halt(world, machine, cause, world.pace.shutdown, then)

    return work


def stop(world: World, call: Call) -> Body:
    machine = find(world, call)

    def work(finish: Finish) -> None:
        life.halt(world, machine, Cause.ASKED, world.pace.shutdown, lambda: finish(None))

    return begin(world, call, machine.path, machine.body["id"], work)


def start(world: World, call: Call) -> Body:
    machine = find(world, call)
    if machine.status not in (TERMINATED, RUNNING):
        raise Refusal(400, "resourceNotReady", f"The resource '{machine.path}' is not ready")
    if machine.status == RUNNING:
        return begin(world, call, machine.path, machine.body["id"], at_once(lambda: None))
    machine.body["status"] = "PROVISIONING"
    work = provisioning(world, machine, new=False)
    return begin(world, call, machine.path, machine.body["id"], work, delay=world.pace.provision)


def reset(world: World, call: Call) -> Body:
    machine = find(world, call)
    if machine.status != RUNNING:
        raise Refusal(400, "resourceNotReady", f"The resource '{machine.path}' is not ready")
    work = at_once(lambda: life.reset(world, machine))
    return begin(world, call, machine.path, machine.body["id"], work)


def set_metadata(world: World, call: Call) -> Body:
    machine = find(world, call)
    check_metadata(call.body, "resource")
    if call.body.get("fingerprint") != machine.body["metadata"]["fingerprint"]:
        raise stale("Supplied")
    kept = {"kind": "compute#metadata", "fingerprint": fingerprint()}
    machine.body["metadata"] = {**call.body, **kept}
    machine.board.tell()
    return begin(world, call, machine.path, machine.body["id"], at_once(lambda: None))


def set_labels(world: World, call: Call) -> Body:
    machine = find(world, call)
    check_labels(call.body.get("labels", {}), "resource.labels")
    if call.body.get("labelFingerprint") != machine.body["labelFingerprint"]:
        raise stale("Labels")
    machine.body |= {"labels": dict(call.body.get("labels", {})), "labelFingerprint": fingerprint()}
    return begin(world, call, machine.path, machine.body["id"], at_once(lambda: None))


def serial_port(world: World, call: Call) -> Body:
    machine = find(world, call)
    file = leaving.folder_of(world, machine) / SERIAL
    data = file.read_bytes() if file.exists() else b""
    first = int(call.query.get("start") or 0)
    return {
        "kind": "compute#serialPortOutput",
        "contents": data[first:].decode(errors="replace"),
        "start": str(first),
        "next": str(len(data)),
        "selfLink": link(f"{machine.path}/serialPort"),
    }


def guest_attributes(world: World, call: Call) -> Body:
    machine = find(world, call)
    asked = (call.query.get("variableKey") or call.query.get("queryPath") or "").rstrip("/")
    found = {
        path: value
        for path, value in machine.board.guest_attributes.items()
        if not asked or path == asked or path.startswith(f"{asked}/")
    }
    if not found:
        raise not_found(f"{machine.path}/getGuestAttributes/{asked}")
    shown = {"kind": "compute#guestAttributes", "selfLink": link(f"{machine.path}/getGuestAttributes")}
    if call.query.get("variableKey"):
        return {**shown, "variableKey": asked, "variableValue": found[asked]} if asked in found else shown
    entries = [
        {"namespace": path.partition("/")[0], "key": path.partition("/")[2], "value": value}
        for path, value in found.items()
    ]
    return {**shown, "queryPath": call.query.get("queryPath", ""), "queryValue": {"items": entries}}


def simulate_maintenance(world: World, call: Call) -> Body:
    """Spot machines are preempted, with notice; others see the event."""
    machine = find(world, call)

    def act() -> None:
        if machine.spot:
            life.preempt(world, machine, notice=True)
        else:
            moves = machine.body["scheduling"]["onHostMaintenance"] == "MIGRATE"
            event = "MIGRATE_ON_HOST_MAINTENANCE" if moves else "TERMINATE_ON_HOST_MAINTENANCE"
            machine.board.tell(maintenance=event)

    return begin(world, call, machine.path, machine.body["id"], at_once(act))


def at(world: World, url: str) -> Machine | None:
    """The machine an address means, if it is there."""
    parts = path_of(url).split("/")
    return world.machines.get((parts[-3], parts[-1])) if len(parts) >= 4 else None
