"""Deletes objects whose owner went: dependents, the content of a namespace, pods of a lost node."""

from __future__ import annotations

from hostler.emulators.k8s.controllers import conditions, deletion, eviction
from hostler.emulators.k8s.controllers.deletion import BACKGROUND, FINALIZERS, FOREGROUND, ORPHAN, Options
from hostler.emulators.k8s.moment import stamp
from hostler.emulators.k8s.node.podstatus import FINISHED
from hostler.emulators.k8s.resources import ACCOUNTS, NAMESPACES, NODES, PODS
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import World

_FORCED = Options(0, BACKGROUND)


def sync(world: World) -> float | None:
    """When to look again at the latest."""
    _owners(world)
    _namespaces(world)
    _unplaced(world)
    _leaving(world)
    return _nodes(world)


def _owners(world: World) -> None:
    things = list(world.storage.everything())
    living = {record["metadata"]["uid"] for record in things}
    for one in things:
        owners = one["metadata"].get("ownerReferences") or []
        gone = owners and not any(owner["uid"] in living for owner in owners)
        if gone and not one["metadata"].get("deletionTimestamp"):
            deletion.delete(world, one, Options(propagation=BACKGROUND))
        finalizers = one["metadata"].get("finalizers", [])
        if one["metadata"].get("deletionTimestamp"):
            if FINALIZERS[ORPHAN] in finalizers:
                _set_free(world, one, things)
            if FINALIZERS[FOREGROUND] in finalizers:
                _take_along(world, one, things)


def _dependents(owner: Obj, things: list[Obj]) -> list[Obj]:
    uid = owner["metadata"]["uid"]
    return [
        record
        for record in things
        if any(ref["uid"] == uid for ref in record["metadata"].get("ownerReferences") or [])
    ]


def _set_free(world: World, owner: Obj, things: list[Obj]) -> None:
    def act(one: Obj) -> None:
        left = [ref for ref in one["metadata"]["ownerReferences"] if ref["uid"] != owner["metadata"]["uid"]]
        one["metadata"]["ownerReferences"] = left
        if not left:
            del one["metadata"]["ownerReferences"]

    for one in _dependents(owner, things):
        world.storage.change(one, act)
    deletion.release(world, owner, FINALIZERS[ORPHAN])


def _take_along(world: World, owner: Obj, things: list[Obj]) -> None:
    left = _dependents(owner, things)
    for record in left:
        if not record["metadata"].get("deletionTimestamp"):
            deletion.delete(world, record, Options(propagation=BACKGROUND))
    if not left:
        deletion.release(world, owner, FINALIZERS[FOREGROUND])


def _namespaces(world: World) -> None:
    storage = world.storage
    for place in storage.all(NAMESPACES):
        name = place["metadata"]["name"]
        if place["metadata"].get("deletionTimestamp"):
            inside = [
                record for record in storage.everything() if record["metadata"].get("namespace") == name
            ]
            for one in inside:
                if not one["metadata"].get("deletionTimestamp"):
                    deletion.delete(world, one, Options(propagation=BACKGROUND))
            if not inside:
                storage.remove(place)
        elif storage.find(ACCOUNTS, name, "default") is None:
            meta = {"name": "default", "namespace": name, "uid": world.new_uid()}
            meta["creationTimestamp"] = stamp(world.clock())
            storage.put({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta})


def _unplaced(world: World) -> None:
    """A pod that is deleted before it has a node fails, as nobody else could say so."""
    for pod in world.storage.all(PODS):
        waiting = not pod["spec"].get("nodeName") and pod["status"]["phase"] == "Pending"
        if waiting and pod["metadata"].get("deletionTimestamp"):
            world.storage.change(pod, lambda one: one["status"].update(phase="Failed"))


def _leaving(world: World) -> None:
    """Nodes go when they are shut down and nothing runs on them; their pods later, as those of lost ones."""
    pods = world.storage.all(PODS)
    for node in world.storage.all(NODES):
        name = node["metadata"]["name"]
        busy = any(
            pod["spec"].get("nodeName") == name and pod["status"]["phase"] not in FINISHED for pod in pods
        )
        if name in world.leaving and not busy:
            world.leaving.discard(name)
            world.storage.remove(node)
    known = {node["metadata"]["name"] for node in world.storage.all(NODES)}
    for name in {pod["spec"].get("nodeName") for pod in pods} - known - {None} - set(world.silent):
        world.silent[str(name)] = world.clock() - world.pace.node_gone


def _nodes(world: World) -> float | None:
    """A silent node is not ready; later its object goes; later still its pods."""
    now, dues = world.clock(), []
    for name, lost in list(world.silent.items()):
        node = world.storage.find(NODES, "", name)
        gone = lost + world.pace.node_gone
        if node is not None and now < gone:
            dues.append(gone)
            _not_ready(world, node)
            continue
        if node is not None:
            world.storage.remove(node)
        due = gone + world.pace.collect
        if now < due:
            dues.append(due)
            continue
        for pod in world.storage.all(PODS):
            if pod["spec"].get("nodeName") == name:
                _collect(world, pod)
        del world.silent[name]
    return min(dues, default=None)


def _not_ready(world: World, node: Obj) -> None:
    text = "Kubelet stopped posting node status."
    if conditions.holds(node, "Ready"):
        now = stamp(world.clock())
        world.storage.change(
            node, lambda one: conditions.put(one, "Ready", False, now, "NodeStatusUnknown", text)
        )


def _collect(world: World, pod: Obj) -> None:
    if pod["status"]["phase"] not in FINISHED:
        pod = eviction.mark(world, pod, "DeletionByPodGC", "PodGC: node no longer exists")
        pod = world.storage.change(pod, lambda one: one["status"].update(phase="Failed"))
    deletion.delete(world, pod, _FORCED)
