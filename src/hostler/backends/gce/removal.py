"""Removal of things on Compute Engine: each step may be done twice, and by anyone.

A template cannot go while a group uses it, so the order is groups, templates, VMs, disks. What is gone
already is as good as removed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor

from hostler.backends import cloud
from hostler.backends.base import Thing
from hostler.backends.gce import names
from hostler.backends.gce.client import Body, GceClient, GceRefusal
from hostler.backends.gce.names import GceOwner, last

GROUP, TEMPLATE, VM, DISK = "group", "template", "VM", "disk"
ORDER = (GROUP, TEMPLATE, VM, DISK)
AT_ONCE = 16


def things(client: GceClient, owner: GceOwner, *, everywhere: bool = False) -> list[Thing]:
    """All that is there of a fleet; `everywhere`: of every fleet of its project, other stores' too, which are
    not `ours`."""
    wanted = f"labels.{cloud.PROJECT}:*" if everywhere else owner.filter
    found = [*_groups(client), *_templates(client)]
    found += [_labelled(VM, "instances", body) for body in client.aggregated("instances", filter=wanted)]
    found += [_labelled(DISK, "disks", body) for body in client.aggregated("disks", filter=wanted)]
    return owner.things(found, everywhere=everywhere)


def remove(client: GceClient, found: Iterable[Thing]) -> None:
    """All of them, kind by kind; disks of VMs go with these."""
    known = list(found)
    for kind in ORDER:
        some = [one.path for one in known if one.kind == kind]
        with ThreadPoolExecutor(AT_ONCE) as pool:
            list(pool.map(lambda path: discard(client, path), some))


def discard(client: GceClient, path: str) -> bool:
    """Whether it was there. A disk that is still a VM's goes with the VM."""
    try:
        return client.delete(path)
    except GceRefusal:
        if client.find(path) is None:
            return False
        raise


def tear_down(client: GceClient, groups: Sequence[str], templates: Sequence[str]) -> None:
    """Remove everything a launch made, except VMs that were taken out of their group."""
    for paths in (list(groups), [f"global/instanceTemplates/{name}" for name in templates]):
        with ThreadPoolExecutor(min(AT_ONCE, 1 + len(paths) // 4)) as pool:  # few one by one, in their order
            list(pool.map(lambda path: discard(client, path), paths))


def leave(client: GceClient, vm: str, group: str) -> None:
    """Have this VM removed, and its group's size lowered so that it is not brought back. Nobody waits: it is
    the VM itself that asks."""
    try:
        client.begin("POST", f"{group}/deleteInstances", {"instances": [vm]})
    except GceRefusal:
        vanish(client, vm)


def vanish(client: GceClient, vm: str) -> None:
    """Have the VM that asks removed; it is in no group."""
    if client.find(vm) is not None:
        client.begin("DELETE", vm)


def abandon(client: GceClient, vm: str, group: str) -> None:
    """Take a VM out of its group, which then goes without it; one that is out already stays so."""
    try:
        client.change("POST", f"{group}/abandonInstances", {"instances": [vm]})
    except GceRefusal:
        members = {last(member.get("instance", "")) for member in _members(client, group)}
        if last(vm) in members:
            raise


def _members(client: GceClient, group: str) -> Iterator[Body]:
    try:
        yield from client.managed(group)
    except GceRefusal as error:
        if error.status != 404:
            raise


def described(client: GceClient) -> Iterator[Body]:
    """Groups and templates that are named as hostler names them."""
    yield from _all_groups(client)
    yield from client.list("global/instanceTemplates", filter=f"name eq {cloud.PREFIX}.*")


def _all_groups(client: GceClient) -> Iterator[Body]:
    return client.aggregated("instanceGroupManagers", filter=f"name eq {cloud.PREFIX}.*")


def _groups(client: GceClient) -> Iterator[Thing]:
    for body in _all_groups(client):
        said = names.described(body)
        scope = "region" if "region" in body else "zone"
        place = last(body.get(scope, ""))
        path = f"{scope}s/{place}/instanceGroupManagers/{body['name']}"
        if said:
            makes = int(body.get("targetSize", 0)) > 0
            yield Thing(
                GROUP, body["name"], path, *_whose(body), str(said["generation"]), where=place, works=makes
            )


def _templates(client: GceClient) -> Iterator[Thing]:
    for body in client.list("global/instanceTemplates", filter=f"name eq {cloud.PREFIX}.*"):
        said = names.described(body)
        if said:
            path = f"global/instanceTemplates/{body['name']}"
            yield Thing(TEMPLATE, body["name"], path, *_whose(body), str(said["generation"]))


def _whose(body: Body) -> tuple[str, str, str]:
    labels = names.labels_of(body)
    return labels[cloud.PROJECT], labels[cloud.FLEET], labels[cloud.STORE]


def _labelled(kind: str, collection: str, body: Body) -> Thing:
    zone = last(body.get("zone", ""))
    path = f"zones/{zone}/{collection}/{body['name']}"
    generation, status = names.generation_of(body["name"]), body.get("status", "")
    return Thing(kind, body["name"], path, *_whose(body), generation, status, zone, works=kind == VM)
