"""Events: what a controller says about an object, the same thing counted rather than repeated."""

from __future__ import annotations

from typing import Any

from hostler.emulators.k8s.moment import stamp
from hostler.emulators.k8s.resources import EVENTS
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import World

NORMAL, WARNING = "Normal", "Warning"


def record(world: World, thing: Obj, kind: str, reason: str, message: str, by: str) -> None:
    meta = thing["metadata"]
    now = stamp(world.clock())
    namespace = meta.get("namespace") or "default"
    for known in world.storage.all(EVENTS, namespace):
        same = (known["involvedObject"]["uid"], known["reason"], known["message"])
        if same == (meta["uid"], reason, message):
            world.storage.change(known, lambda one: one.update(count=one["count"] + 1, lastTimestamp=now))
            return
    world.storage.put(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": _meta(world, f"{meta['name']}.{world.suffix()}{world.suffix()}", namespace, now),
            "involvedObject": _about(thing),
            "type": kind,
            "reason": reason,
            "message": message,
            "source": {"component": by},
            "reportingComponent": by,
            "reportingInstance": "",
            "firstTimestamp": now,
            "lastTimestamp": now,
            "count": 1,
        }
    )


def _about(thing: Obj) -> dict[str, Any]:
    meta = thing["metadata"]
    found = {"apiVersion": thing["apiVersion"], "kind": thing["kind"], "name": meta["name"]}
    found |= {"uid": meta["uid"], "resourceVersion": meta.get("resourceVersion", "")}
    return found | ({"namespace": meta["namespace"]} if meta.get("namespace") else {})


def _meta(world: World, name: str, namespace: str, now: str) -> dict[str, Any]:
    return {"name": name, "namespace": namespace, "uid": world.new_uid(), "creationTimestamp": now}
