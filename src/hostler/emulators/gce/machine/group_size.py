"""Keeps a group at its target size: makes machines, makes them again, deletes those that are too many.

A machine that was preempted, deleted behind the group's back, or stopped comes back under its name; only in
another zone it is another one. Called under the world's lock.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from hostler.emulators.gce.api import instances
from hostler.emulators.gce.api.links import after, last, link, zonal
from hostler.emulators.gce.api.operations import Finish
from hostler.emulators.gce.api.refusal import Failure, Refusal
from hostler.emulators.gce.api.templates import template_at
from hostler.emulators.gce.catalog import zones_of
from hostler.emulators.gce.clock import stamp
from hostler.emulators.gce.machine import leaving, life
from hostler.emulators.gce.machine.board import NUMBER
from hostler.emulators.gce.machine.group import (
    CREATING,
    DELETING,
    NONE,
    RECREATING,
    Group,
    Member,
    choose_zone,
    surplus,
)
from hostler.emulators.gce.machine.machine import TERMINATED, Cause, Machine
from hostler.emulators.gce.world import World

_LETTERS = "bcdfghjklmnpqrstvwxz0123456789"
_MANAGER = f"service-{NUMBER}@compute-system.iam.gserviceaccount.com"
_KEPT = 50  # errors that are shown


def watch(world: World, group: Group) -> None:
    """Look after the group now, and again as long as it is there."""
    keep(world, group)
    if world.groups.get((group.scope, group.name)) is group:
        world.agenda.after(world.pace.look, lambda: watch(world, group))


def keep(world: World, group: Group) -> None:
    for member in surplus(group):
        member.action = DELETING
    for member in list(group.members):
        _tend(world, group, member)
    while len(group.staying) < group.target:
        member = _new_member(world, group)
        group.members.append(member)
        _tend(world, group, member)
    if group.when_gone and not group.members:
        world.groups.pop((group.scope, group.name), None)
        for then in group.when_gone:
            then()


def zones(group: Group) -> list[str]:
    """Where the group's machines may be."""
    if group.scope.kind == "zones":
        return [group.scope.place]
    asked = group.body.get("distributionPolicy", {}).get("zones") or []
    return [last(one["zone"]) for one in asked] or zones_of(group.scope.place)


def _tend(world: World, group: Group, member: Member) -> None:
    machine = world.machines.get((member.zone, member.name))
    if member.action == DELETING:
        _let_go(world, group, member, machine)
        return
    broken = machine is None or machine.status == TERMINATED
    if member.action == NONE and broken and group.repairs:
        member.action = RECREATING
    if member.action in (CREATING, RECREATING) and not member.busy and member.retry_at <= world.clock.now():
        if machine is not None:
            leaving.discard(world, machine)
        _attempt(world, group, member)


def _let_go(world: World, group: Group, member: Member, machine: Machine | None) -> None:
    if machine is not None:
        told = (machine.scope, machine.path, machine.body["id"], _MANAGER)
        instances.removal(world, machine, Cause.GROUP)(lambda _: world.operations.note_deleted(*told))
        machine = world.machines.get((member.zone, member.name))
    if machine is None and not member.busy and member in group.members:
        group.members.remove(member)


def _attempt(world: World, group: Group, member: Member) -> None:
    _move(world, group, member)
    template = template_at(world, group.body["instanceTemplate"])
    scope = zonal(world.project, member.zone)
    try:
        values = _properties(group, template.body["properties"], member)
        machine = instances.add(world, scope, values, template.ends)
    except Refusal as refusal:
        _failed(world, group, member, Failure(refusal.constant, refusal.message, refusal.code))
        return
    member.busy = True

    def work(finish: Finish) -> None:
        def both(failure: Failure | None) -> None:
            finish(failure)
            _settled(world, group, member, failure)

        life.provision(world, machine, both)

    operations, delay = world.operations, world.pace.provision
    operations.start(scope, "insert", machine.path, machine.body["id"], work, user=_MANAGER, delay=delay)


def _settled(world: World, group: Group, member: Member, failure: Failure | None) -> None:
    member.busy = False
    if failure is not None:
        _failed(world, group, member, failure)
    elif member.action != DELETING:
        member.action, member.errors = NONE, []
        group.failed_in.pop(member.zone, None)


def _failed(world: World, group: Group, member: Member, failure: Failure) -> None:
    now = world.clock.now()
    if failure.code.startswith("ZONE_RESOURCE_POOL_EXHAUSTED"):
        group.failed_in[member.zone] = now
    elsewhere = any(group.failed_in.get(zone, -1e9) < now - world.pace.retry for zone in zones(group))
    member.retry_at = now if group.moves and elsewhere and failure.status == 503 else now + world.pace.retry
    said = {"code": failure.code, "message": failure.message}
    member.errors = [said]
    details: dict[str, Any] = {
        "action": member.action,
        "instance": link(zonal(world.project, member.zone).of("instances", member.name)),
    }
    details["version"] = {"instanceTemplate": group.body["instanceTemplate"]}
    group.errors = [*group.errors, {"error": said, "instanceActionDetails": details, "timestamp": stamp()}][
        -_KEPT:
    ]


def _move(world: World, group: Group, member: Member) -> None:
    """To another zone if there was nothing to be had in this one; it is another machine then."""
    allowed = zones(group)
    if member.zone in allowed and (member.zone not in group.failed_in or not group.moves):
        return
    chosen = choose_zone(group, allowed)
    if chosen != member.zone:
        member.zone, member.name = chosen, _new_name(world, group)


def _new_member(world: World, group: Group) -> Member:
    return Member(_new_name(world, group), choose_zone(group, zones(group)))


def _new_name(world: World, group: Group) -> str:
    known = {name for _, name in world.machines} | {member.name for member in group.members}
    while True:
        end = "".join(world.chance.choice(_LETTERS) for _ in range(4))
        name = f"{group.body['baseInstanceName'].rstrip('-')}-{end}"
        if name not in known:
            return name


def _properties(group: Group, properties: Mapping[str, Any], member: Member) -> dict[str, Any]:
    """Properties of this member's machine, from the template."""
    values = copy.deepcopy(dict(properties))
    template = group.body["instanceTemplate"]
    short = f"projects/{NUMBER}/{after_project(template)}"
    made_by = f"projects/{NUMBER}/{group.scope.short}/instanceGroupManagers/{group.name}"
    items = list(values.get("metadata", {}).get("items", []))
    items += [{"key": "instance-template", "value": short}, {"key": "created-by", "value": made_by}]
    values["metadata"] = {"items": items}
    return {**values, "name": member.name}


def after_project(url: str) -> str:
    project = after(url, "projects")
    return url.partition(f"projects/{project}/")[2]
