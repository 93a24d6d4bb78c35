"""Images and their families, the project's own and the public ones: `images.*` of the API."""

from __future__ import annotations

from typing import Any

from hostler.emulators.gce.api.call import Call, begin
from hostler.emulators.gce.api.links import Scope, after, check_name, last, link, path_of
from hostler.emulators.gce.api.operations import Finish, at_once
from hostler.emulators.gce.api.pages import listing
from hostler.emulators.gce.api.refusal import Failure, exists, invalid, not_found
from hostler.emulators.gce.catalog import PUBLIC
from hostler.emulators.gce.clock import stamp
from hostler.emulators.gce.machine import contents
from hostler.emulators.gce.machine.blueprint import check_labels
from hostler.emulators.gce.world import World, fingerprint

Body = dict[str, Any]
_VERSION = "v20261101"


def image_at(world: World, url: str) -> str:
    """The path of the image that an address, a partial one, or a family's means; refused if there is none."""
    parts = path_of(url).split("/")
    project = parts[1] if parts[0] == "projects" else world.project
    scope = Scope(project, "global")
    if "family" in parts:
        return scope.of("images", str(in_family(world, scope, parts[-1])["name"]))
    record = named(world, scope, parts[-1])
    return scope.of("images", str(record["name"]))


def named(world: World, scope: Scope, name: str) -> Body:
    own = world.images if scope.project == world.project else {body["name"]: body for body in public(scope)}
    if name not in own:
        raise not_found(scope.of("images", name))
    return own[name]


def in_family(world: World, scope: Scope, family: str) -> Body:
    """The newest that is not deprecated."""
    own = list(world.images.values()) if scope.project == world.project else public(scope)
    fresh = [one for one in own if one.get("family") == family and _active(one) and one["status"] == "READY"]
    if not fresh:
        raise not_found(f"{scope.path}/images/family/{family}")
    return max(enumerate(fresh), key=lambda one: (one[1]["creationTimestamp"], one[0]))[1]


def public(scope: Scope) -> list[Body]:
    """Every family of a public project has one image."""
    made = []
    for number, family in enumerate(PUBLIC.get(scope.project, ())):
        name = f"{family}-{_VERSION}"
        facts = {
            "id": str(7000 + number),
            "name": name,
            "family": family,
            "creationTimestamp": stamp(1793491200),
        }
        made.append({**_fixed(scope, name), **facts, "diskSizeGb": "10", "status": "READY"})
    return made


def get(world: World, call: Call) -> Body:
    return named(world, call.scope, call.name)


def get_from_family(world: World, call: Call) -> Body:
    return in_family(world, call.scope, call.name)


def list_(world: World, call: Call) -> Body:
    own = list(world.images.values()) if call.scope.project == world.project else public(call.scope)
    return listing("compute#imageList", f"{call.scope.path}/images", own, call.query)


def insert(world: World, call: Call) -> Body:
    name = check_name(call.body.get("name"))
    path = call.scope.of("images", name)
    if name in world.images:
        raise exists(path)
    check_labels(call.body.get("labels", {}), "resource.labels")
    if call.body.get("family"):
        check_name(call.body["family"])
    disk = _disk(world, str(call.body["sourceDisk"])) if call.body.get("sourceDisk") else None
    size = str(disk["sizeGb"]) if disk else str(call.body.get("diskSizeGb", 10))
    made = {**_fixed(call.scope, name), **call.body, "id": world.operations.identity(), "diskSizeGb": size}
    made |= {"status": "PENDING", "creationTimestamp": stamp(), "labelFingerprint": fingerprint()}
    world.images[name] = made

    def work(finish: Finish) -> None:
        busy = disk is not None and _runs(world, disk) and not call.flag("forceCreate")
        if busy:
            del world.images[name]
        else:
            made.update(status="READY", archiveSizeBytes=str(int(float(size) * _PACKED)))
        if disk is not None and not busy:
            contents.into_image(world, name, disk)
        finish(_BUSY if busy else None)

    return begin(world, call, path, made["id"], work)


def delete(world: World, call: Call) -> Body:
    record = _own(world, call)
    work = at_once(lambda: contents.forget_image(world, call.name))
    return begin(world, call, call.scope.of("images", call.name), record["id"], work)


def patch(world: World, call: Call) -> Body:
    record = _own(world, call)
    wrong = sorted(set(call.body) - set(_CHANGEABLE))
    if wrong:
        raise invalid(f"resource.{wrong[0]}", call.body[wrong[0]], "Only some fields can be changed.")
    if call.body.get("family"):
        check_name(call.body["family"])
    work = at_once(lambda: record.update(call.body))
    return begin(world, call, call.scope.of("images", call.name), record["id"], work)


def deprecate(world: World, call: Call) -> Body:
    record = _own(world, call)
    record["deprecated"] = dict(call.body)
    return begin(world, call, call.scope.of("images", call.name), record["id"], at_once(lambda: None))


_CHANGEABLE = ("family", "description", "deprecated")
_PACKED = 1e8  # bytes of an image for each GB of its disk
_BUSY = Failure("RESOURCE_IN_USE_BY_ANOTHER_RESOURCE", "The disk is in use by a running instance.")


def _disk(world: World, url: str) -> Body:
    zone, name = after(url, "zones"), last(url)
    for (place, named), body in world.disks.items():
        if named == name and zone in ("", place):
            return body
    raise not_found(url)


def _own(world: World, call: Call) -> Body:
    if call.name not in world.images:
        raise not_found(call.scope.of("images", call.name))
    return world.images[call.name]


def _runs(world: World, disk: Body) -> bool:
    users = [last(user) for user in disk.get("users", [])]
    return any(
        machine.name in users and machine.status != "TERMINATED" for machine in world.machines.values()
    )


def _active(image: Body) -> bool:
    return str(image.get("deprecated", {}).get("state", "ACTIVE")) == "ACTIVE"


def _fixed(scope: Scope, name: str) -> Body:
    return {"kind": "compute#image", "selfLink": link(scope.of("images", name)), "sourceType": "RAW"}
