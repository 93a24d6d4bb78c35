"""Google's advice on capacity before anything is made: how likely each region has it. Never needed.

Of spot VMs also how many were taken away lately: where they come as easily, those that stay are better.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hostler.backends.capacity import MachineGroup
from hostler.backends.gce.client import GceClient, GceRefusal
from hostler.backends.gce.shape import GPUS, VmShape
from hostler.errors import CloudUnavailable

LOSS = 0.5  # how much a region where all spot VMs are taken away is worth less

Body = dict[str, Any]


def ask(client: GceClient, found: VmShape, groups: Sequence[MachineGroup]) -> dict[str, float]:
    """region → from 0 (none to be had) to 1, of those that answer."""
    scores: dict[str, float] = {}
    for group in groups:
        place = f"regions/{group.region}/advice"
        likely = obtainability(_answer(client, f"{place}/capacity", body(found, group)))
        lost = None
        if group.spot:
            lost = preemptions(_answer(client, f"{place}/capacityHistory", history(found, group)))
        if likely is not None or lost is not None:
            scores[group.region] = score(likely, lost)
    return scores


def score(likely: float | None, lost: float | None) -> float:
    """Score of a region; either value may be unknown. Pure. Only a region without any capacity gets 0."""
    stays = 1.0 - LOSS * (lost or 0.0)
    return (1.0 if likely is None else likely) * stays


def obtainability(answer: Body) -> float | None:
    known = [
        recommendation.get("scores", {}).get("obtainability")
        for recommendation in answer.get("recommendations", ())
    ]
    return max((float(one) for one in known if one is not None), default=None)


def preemptions(answer: Body) -> float | None:
    """The part of spot VMs that were taken away, on the days that are told."""
    rates = [float(one["preemptionRate"]) for one in answer.get("preemptionHistory", ())]
    return sum(rates) / len(rates) if rates else None


def _answer(client: GceClient, path: str, asked: Body) -> Body:
    try:
        return client.advise(path, asked)
    except (GceRefusal, CloudUnavailable):
        return {}


def history(found: VmShape, group: MachineGroup) -> Body:
    asked: Body = {"machineType": found.machine, "scheduling": {"provisioningModel": "SPOT"}}
    if found.attached:
        asked["guestAccelerators"] = _accelerators(found)
    return {
        "instanceProperties": asked,
        "locationPolicy": {"location": f"regions/{group.region}"},
        "types": ["PREEMPTION"],
    }


def body(found: VmShape, group: MachineGroup) -> Body:
    selection: Body = {"machineTypes": [found.machine]}
    if found.attached:
        selection["guestAccelerators"] = _accelerators(found)
    return {
        "size": max(1, group.size),
        "distributionPolicy": {
            "targetShape": "ANY",
            "zones": [{"zone": f"zones/{zone}"} for zone in group.zones],
        },
        "instanceFlexibilityPolicy": {"instanceSelections": {"machine": selection}},
        "instanceProperties": {"scheduling": {"provisioningModel": "SPOT" if group.spot else "STANDARD"}},
    }


def _accelerators(found: VmShape) -> list[Body]:
    return [{"acceleratorType": GPUS[found.gpu].type, "acceleratorCount": found.gpus}]
