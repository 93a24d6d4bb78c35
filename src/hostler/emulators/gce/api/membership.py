"""The plain group behind every managed one, to read: `instanceGroups.*` and `regionInstanceGroups.*`."""

from __future__ import annotations

from typing import Any

from hostler.emulators.gce.api.call import Call
from hostler.emulators.gce.api.links import link
from hostler.emulators.gce.api.pages import listing
from hostler.emulators.gce.api.refusal import not_found
from hostler.emulators.gce.machine.group import Group
from hostler.emulators.gce.world import World

Body = dict[str, Any]


def get(world: World, call: Call) -> Body:
    group = world.groups.get((call.scope, call.name))
    if group is None:
        raise not_found(call.scope.of("instanceGroups", call.name))
    return _shown(group)


def list_(world: World, call: Call) -> Body:
    rows = [_shown(group) for (scope, _), group in world.groups.items() if scope == call.scope]
    kind = "compute#regionInstanceGroupList" if call.scope.kind == "regions" else "compute#instanceGroupList"
    return listing(kind, f"{call.scope.path}/instanceGroups", rows, call.query)


def _shown(group: Group) -> Body:
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
