"""Conditions of an object's status: set by type, their times kept while they do not change."""

from __future__ import annotations

from typing import Any

from hostler.emulators.k8s.storage import Obj


def find(thing: Obj, kind: str) -> dict[str, Any] | None:
    found: list[dict[str, Any]] = thing.get("status", {}).get("conditions") or []
    return next((one for one in found if one["type"] == kind), None)


def holds(thing: Obj, kind: str) -> bool:
    found = find(thing, kind)
    return found is not None and found["status"] == "True"


def put(
    thing: Obj, kind: str, status: bool, now: str, reason: str = "", message: str = "", probed: bool = False
) -> None:
    """In place."""
    fresh: dict[str, Any] = {"type": kind, "status": str(status), "lastTransitionTime": now}
    fresh |= {"lastProbeTime": now if probed else None}
    fresh |= {key: value for key, value in (("reason", reason), ("message", message)) if value}
    conditions: list[dict[str, Any]] = thing.setdefault("status", {}).setdefault("conditions", [])
    for number, one in enumerate(conditions):
        if one["type"] == kind:
            if one["status"] == fresh["status"]:
                fresh["lastTransitionTime"] = one["lastTransitionTime"]
                fresh["lastProbeTime"] = one.get("lastProbeTime")
            conditions[number] = fresh
            return
    conditions.append(fresh)
