"""Requests about managed instance groups: `instanceGroupManagers.*` and `regionInstanceGroupManagers.*`.

Behind every managed group is a plain one, to read: `instanceGroups.*` and `regionInstanceGroups.*`.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from hostler.emulators.gce import diary
from hostler.emulators.gce.api.call import Call, begin
from hostler.emulators.gce.api.links import check_name, last, link, path_of, zonal
from hostler.emulators.gce.api.operations import Finish, at_once
from hostler.emulators.gce.api.pages import aggregated, listing, page
from hostler.emulators.gce.api.refusal import exists, invalid, not_found, required
from hostler.emulators.gce.api.templates import template_at
from hostler.emulators.gce.catalog import REGIONS, ZONES, zones_of
from hostler.emulators.gce.clock import stamp
from hostler.emulators.gce.machine import group_size
from hostler.emulators.gce.machine.group import DELETING, NONE, Group, Member
from hostler.emulators.gce.world import World, fingerprint

Body = dict[str, Any]

SIZE_MAX = 2000
_LIST = "compute#instanceGroupManagerList"
_ACTIONS = (
    *("abandoning", "creating", "creatingWithoutRetries", "deleting", "none", "recreating"),
    *("refreshing", "restarting", "resuming", "starting", "stopping", "suspending", "verifying"),
)


def insert(world: World, call: Call) -> Body:
    name = check_name(call.body.get("name"))
    path = call.scope.of("instanceGroupManagers", name)
    if (call.scope, name) in world.groups:
        raise exists(path)
    if call.body.get("targetSize") is None:
        raise required("resource.targetSize")
    _check_shape(call.scope.place if call.scope.kind == "regions" else "", call.body)
    group = Group(call.scope, _filled(world, call, name))
    world.groups[call.scope, name] = group
    world.diary.note(diary.ASKED, name)

    def work(finish: Finish) -> None:
        group_size.watch(world, group)
        finish(None)

    return begin(world, call, path, group.body["id"], work)


def _filled(world: World, call: Call, name: str) -> Body:
    body = copy.deepcopy(dict(call.body))
    versions = body.get("versions") or [{}]
    asked = body.get("instanceTemplate") or versions[0].get("instanceTemplate")
    if not asked:
        raise required("resource.instanceTemplate")
    template = template_at(world, asked).body["selfLink"]
    path = call.scope.of("instanceGroupManagers", name)
    body |= {
        "kind": "compute#instanceGroupManager",
        "id": world.operations.identity(),
        "creationTimestamp": stamp(),
        "baseInstanceName": body.get("baseInstanceName") or name,
        "instanceTemplate": template,
        "versions": [
            {**versions[0], "instanceTemplate": template, "targetSize": {"calculated": body["targetSize"]}}
        ],
        "targetSize": _size(body["targetSize"]),
        "instanceGroup": link(call.scope.of("instanceGroups", name)),
        "fingerprint": fingerprint(),
        "selfLink": link(path),
        **call.scope.fields(),
    }
    if call.scope.kind == "regions":
        policy = body.get("distributionPolicy", {})
        named = [last(one["zone"]) for one in policy.get("zones", [])] or zones_of(call.scope.place)
        full = [{"zone": link(zonal(world.project, zone).path)} for zone in named]
        body["distributionPolicy"] = {"targetShape": policy.get("targetShape", "EVEN"), "zones": full}
    check_name(body["baseInstanceName"].rstrip("-"), "resource.baseInstanceName")
    return body


def _check_shape(region: str, body: Mapping[str, Any]) -> None:
    policy = body.get("distributionPolicy", {})
    for zone in policy.get("zones", []):
        if last(zone.get("zone", "")) not in zones_of(region):
            text = f"The zone is not in region '{region}'."
            raise invalid("resource.distributionPolicy.zones", zone.get("zone"), text)
    shape = policy.get("targetShape", "EVEN")
    proactive = body.get("updatePolicy", {}).get("instanceRedistributionType", "PROACTIVE") == "PROACTIVE"
    if region and shape != "EVEN" and proactive:
        text = f"Target shape {shape} needs instance redistribution type NONE."
        raise invalid("resource.updatePolicy.instanceRedistributionType", "PROACTIVE", text)


def _size(given: object) -> int:
    text = str(given)
    if not text.isdigit() or int(text) > SIZE_MAX:
        raise invalid("resource.targetSize", given, f"It must be between 0 and {SIZE_MAX}.")
    return int(text)


def find(world: World, call: Call) -> Group:
    group = world.groups.get((call.scope, call.name))
    if group is None:
        raise not_found(call.scope.of("instanceGroupManagers", call.name))
    return group


def shown(group: Group) -> Body:
    """The resource with what its members do."""
    actions = dict.fromkeys(_ACTIONS, 0)
    for member in group.members:
        actions[member.action.lower()] += 1
    quiet = actions["none"] == len(group.members) == group.target
    stateful = {"hasStatefulConfig": False, "perInstanceConfigs": {"allEffective": True}}
    status = {"isStable": quiet, "versionTarget": {"isReached": quiet}, "stateful": stateful}
    return {**group.body, "currentActions": actions, "status": status}


def get(world: World, call: Call) -> Body:
    return shown(find(world, call))


def list_(world: World, call: Call) -> Body:
    rows = [shown(group) for (scope, _), group in world.groups.items() if scope == call.scope]
    kind = "compute#regionInstanceGroupManagerList" if call.scope.kind == "regions" else _LIST
    return listing(kind, f"{call.scope.path}/instanceGroupManagers", rows, call.query)


def aggregated_list(world: World, call: Call) -> Body:
    places = [*(f"regions/{region}" for region in REGIONS), *(f"zones/{zone}" for zone in ZONES)]
    by_place: dict[str, list[Body]] = {place: [] for place in places}
    for (scope, _), group in world.groups.items():
        by_place[scope.short].append(shown(group))
    path = f"projects/{world.project}/aggregated/instanceGroupManagers"
    kind = "compute#instanceGroupManagerAggregatedList"
    return aggregated(kind, path, "instanceGroupManagers", by_place, call.query)


def delete(world: World, call: Call) -> Body:
    group = find(world, call)

    def work(finish: Finish) -> None:
        if world.groups.get((group.scope, group.name)) is not group:
            finish(None)
            return
        group.when_gone.append(lambda: finish(None))
        group.target = 0
        group_size.keep(world, group)

    group.target = 0
    return begin(world, call, group.path, group.body["id"], work)


def resize(world: World, call: Call) -> Body:
    group = find(world, call)
    size = _size(call.query.get("size", ""))
    return _changed(world, call, group, {"targetSize": size})


def patch(world: World, call: Call) -> Body:
    group = find(world, call)
    changes = copy.deepcopy(dict(call.body))
    if "targetSize" in changes:
        changes["targetSize"] = _size(changes["targetSize"])
    versions = changes.get("versions") or [{}]
    template = changes.get("instanceTemplate") or versions[0].get("instanceTemplate")
    if template:
        link_ = template_at(world, template).body["selfLink"]
        changes |= {"instanceTemplate": link_, "versions": [{**versions[0], "instanceTemplate": link_}]}
    changes["fingerprint"] = fingerprint()
    return _changed(world, call, group, changes)


def _changed(world: World, call: Call, group: Group, changes: Body) -> Body:
    group.body |= changes
    return begin(world, call, group.path, group.body["id"], at_once(lambda: group_size.keep(world, group)))


def delete_instances(world: World, call: Call) -> Body:
    """They go, and the target size goes down by as many."""
    group = find(world, call)
    members = _asked(group, call)
    for member in members:
        if member.action != DELETING:
            member.action = DELETING
            group.target -= 1
    return begin(world, call, group.path, group.body["id"], at_once(lambda: group_size.keep(world, group)))


def abandon_instances(world: World, call: Call) -> Body:
    """They stay, but the group knows them no more; the target size goes down by as many."""
    group = find(world, call)
    for member in _asked(group, call):
        group.members.remove(member)
        group.target -= member.action != DELETING
    return begin(world, call, group.path, group.body["id"], at_once(lambda: None))


def _asked(group: Group, call: Call) -> list[Member]:
    members = []
    for url in call.body.get("instances", []):
        parts = path_of(url).split("/")
        member = group.member(parts[-3], parts[-1]) if len(parts) >= 4 else None
        if member is not None:
            members.append(member)
        elif not call.body.get("skipInstancesOnValidationError"):
            text = f"The instance is not a member of '{group.path}'."
            raise invalid("instances", url, text)
    if not call.body.get("instances"):
        raise required("instances")
    return members


def managed_instances(world: World, call: Call) -> Body:
    group = find(world, call)
    rows = [_managed(world, group, member) for member in group.members]
    return page(rows, call.query, key="managedInstances")[0]


def _managed(world: World, group: Group, member: Member) -> Body:
    machine = world.machines.get((member.zone, member.name))
    body: Body = {
        "name": member.name,
        "instance": link(zonal(world.project, member.zone).of("instances", member.name)),
        "currentAction": member.action,
        "version": {"instanceTemplate": group.body["instanceTemplate"]},
        "targetStatus": "DELETED" if member.action == DELETING else "RUNNING",
    }
    if machine is not None:
        body |= {"id": machine.body["id"], "instanceStatus": machine.status}
    if member.errors and member.action != NONE:
        body["lastAttempt"] = {"errors": {"errors": member.errors}}
    return body


def list_errors(world: World, call: Call) -> Body:
    return page(find(world, call).errors, call.query)[0]


def get_plain(world: World, call: Call) -> Body:
    group = world.groups.get((call.scope, call.name))
    if group is None:
        raise not_found(call.scope.of("instanceGroups", call.name))
    return _shown_plain(group)


def list_plain(world: World, call: Call) -> Body:
    rows = [_shown_plain(group) for (scope, _), group in world.groups.items() if scope == call.scope]
    kind = "compute#regionInstanceGroupList" if call.scope.kind == "regions" else "compute#instanceGroupList"
    return listing(kind, f"{call.scope.path}/instanceGroups", rows, call.query)


def _shown_plain(group: Group) -> Body:
    return {
        "kind": "compute#instanceGroup",
        "id": group.body["id"],
        "name": group.name,
        "description": "This instance group is controlled by Instance Group Manager.",
        "size": len(group.members),
        "creationTimestamp": group.body["creationTimestamp"],
        "selfLink": link(group.scope.of("instanceGroups", group.name)),
        **group.scope.fields(),
    }
