"""Conditions of an object's status: set by type, their times kept while they do not change."""

from __future__ import annotations

from typing import Any

from hostler.emulators.k8s.storage import Obj


def find(thing: Obj, kind: str) -> dict[str, Any] | None:
    rows: list[dict[str, Any]] = thing.get("status", {}).get("conditions") or []
    return next((record for record in rows if record["type"] == kind), None)


def holds(thing: Obj, kind: str) -> bool:
    record = find(thing, kind)
    return record is not None and record["status"] == "True"


def put(
    thing: Obj, kind: str, status: bool, now: str, reason: str = "", message: str = "", probed: bool = False
) -> None:
    """In place."""
    fresh: dict[str, Any] = {"type": kind, "status": str(status), "lastTransitionTime": now}
    fresh |= {"lastProbeTime": now if probed else None}
    fresh |= {key: value for key, value in (("reason", reason), ("message", message)) if value}
    conditions: list[dict[str, Any]] = thing.setdefault("status", {}).setdefault("conditions", [])
    for number, record in enumerate(conditions):
        if record["type"] == kind:
            if record["status"] == fresh["status"]:
                fresh["lastTransitionTime"] = record["lastTransitionTime"]
                fresh["lastProbeTime"] = record.get("lastProbeTime")
            conditions[number] = fresh
            return
    conditions.append(fresh)
