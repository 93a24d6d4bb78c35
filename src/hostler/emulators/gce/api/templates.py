"""Instance templates, of the project or a region: `instanceTemplates.*` and `regionInstanceTemplates.*`."""

from __future__ import annotations

import copy
from typing import Any

from hostler.emulators.gce.api.call import Call, begin
from hostler.emulators.gce.api.links import check_name, last, link, path_of
from hostler.emulators.gce.api.operations import at_once
from hostler.emulators.gce.api.pages import aggregated, listing
from hostler.emulators.gce.api.refusal import exists, in_use, not_found, required
from hostler.emulators.gce.clock import stamp
from hostler.emulators.gce.machine.blueprint import check_properties
from hostler.emulators.gce.world import Template, World, fingerprint

Body = dict[str, Any]


def template_at(world: World, url: str) -> Template:
    """The template that an address means."""
    path, name = path_of(url), last(url)
    for (scope, known), template in world.templates.items():
        if known == name and path.removeprefix(f"projects/{world.project}/") in (
            f"{scope.short}/instanceTemplates/{name}",
            name,
        ):
            return template
    raise not_found(path)


def insert(world: World, call: Call) -> Body:
    name = check_name(call.body.get("name"))
    path = call.scope.of("instanceTemplates", name)
    if (call.scope, name) in world.templates:
        raise exists(path)
    given = copy.deepcopy(call.body.get("properties"))
    if not given:
        raise required("resource.properties")
    check_properties(given, "resource.properties")
    if given.get("metadata"):
        given["metadata"] |= {"kind": "compute#metadata", "fingerprint": fingerprint()}
    until = given.get("scheduling", {}).get("terminationTime")
    made = {
        "kind": "compute#instanceTemplate",
        "id": world.operations.identity(),
        "name": name,
        "description": call.body.get("description", ""),
        "creationTimestamp": stamp(),
        "properties": given,
        "selfLink": link(path),
        **call.scope.fields(),
    }
    world.templates[call.scope, name] = Template(made, world.clock.moment(until) if until else None)
    return begin(world, call, path, made["id"], at_once(lambda: None))


def find(world: World, call: Call) -> Template:
    template = world.templates.get((call.scope, call.name))
    if template is None:
        raise not_found(call.scope.of("instanceTemplates", call.name))
    return template


def get(world: World, call: Call) -> Body:
    return find(world, call).body


def list_(world: World, call: Call) -> Body:
    rows = [template.body for (scope, _), template in world.templates.items() if scope == call.scope]
    return listing("compute#instanceTemplateList", f"{call.scope.path}/instanceTemplates", rows, call.query)


def aggregated_list(world: World, call: Call) -> Body:
    by_place: dict[str, list[Body]] = {"global": []}
    for (scope, _), template in world.templates.items():
        by_place.setdefault(scope.short, []).append(template.body)
    path = f"projects/{world.project}/aggregated/instanceTemplates"
    kind = "compute#instanceTemplateAggregatedList"
    return aggregated(kind, path, "instanceTemplates", by_place, call.query)


def delete(world: World, call: Call) -> Body:
    template = find(world, call)
    path = call.scope.of("instanceTemplates", call.name)
    _check_unused(world, template, path)
    world.templates.pop((call.scope, call.name))
    return begin(world, call, path, template.body["id"], at_once(lambda: None))


def _check_unused(world: World, template: Template, path: str) -> None:
    for group in world.groups.values():
        if group.body["instanceTemplate"] == template.body["selfLink"]:
            raise in_use("instance_template", path, group.path)
