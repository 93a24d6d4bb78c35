"""Evictions: the pod is marked as disrupted, then deleted with its grace period."""

from __future__ import annotations

from typing import Any

from hostler.emulators.k8s.controllers import conditions, deletion
from hostler.emulators.k8s.moment import stamp
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import World

DISRUPTED = "DisruptionTarget"


def evict(world: World, pod: Obj, request: Obj) -> dict[str, Any]:
    """As the subresource answers."""
    given = request.get("deleteOptions") or {}
    mark(world, pod, "EvictionByEvictionAPI", "Eviction API: evicting")
    deletion.delete(world, pod, deletion.Options(given.get("gracePeriodSeconds"), deletion.BACKGROUND))
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}


def mark(world: World, pod: Obj, reason: str, message: str) -> Obj:
    now = stamp(world.clock())
    return world.storage.change(pod, lambda one: conditions.put(one, DISRUPTED, True, now, reason, message))
