"""Lifetimes of a launch's VMs, by Compute Engine's own operations, as long as it keeps those: two weeks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from hostler.backends.gce.client import GceClient
from hostler.backends.gce.names import generation_of, last

BORN = "insert"
ENDS = ("delete", *(f"compute.instances.{how}" for how in ("preempted", "guestTerminate", "hostError")))
_KINDS = (BORN, *ENDS)


def lives(client: GceClient, name: str, number: str, now: float) -> dict[str, tuple[float, float]]:
    """VM → from when to when it was there. `name`: how names of the launch's VMs begin."""
    found = client.aggregated("operations", filter=f"targetLink eq .*/instances/{name}-.*")
    return of_launch(found, name, number, now)


def of_launch(
    operations: Iterable[Mapping[str, Any]], name: str, number: str, now: float
) -> dict[str, tuple[float, float]]:
    """The same of these operations; one that has no end yet is there now. Pure."""
    began: dict[str, float] = {}
    ended: dict[str, float] = {}
    for operation in operations:
        vm, kind = last(str(operation.get("targetLink", ""))), str(operation.get("operationType", ""))
        if not vm.startswith(f"{name}-") or generation_of(vm) != number or kind not in _KINDS:
            continue
        if operation.get("status") != "DONE" or operation.get("error"):
            continue
        moment, own = _moment(str(operation.get("endTime", ""))), str(operation.get("targetId", ""))
        if kind == BORN:
            began[own] = moment
        else:
            ended[own] = max(moment, ended.get(own, 0.0))
    return {own: (start, ended.get(own, now)) for own, start in began.items()}


def _moment(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
