"""What Google says of capacity before anything is made: how likely each region has it. Never needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hostler.backends.gce.client import Client, Refused
from hostler.backends.gce.groups import Group
from hostler.backends.gce.shape import GPUS, Shape
from hostler.errors import CloudUnavailable

Body = dict[str, Any]


def ask(client: Client, found: Shape, groups: Sequence[Group]) -> dict[str, float]:
    """region → from 0 (none to be had) to 1, of those that answer."""
    scores: dict[str, float] = {}
    for group in groups:
        try:
            answer = client.advise(f"regions/{group.region}/advice/capacity", body(found, group))
        except (Refused, CloudUnavailable):
            continue
        known = [one.get("scores", {}).get("obtainability") for one in answer.get("recommendations", ())]
        numbers = [float(one) for one in known if one is not None]
        if numbers:
            scores[group.region] = max(numbers)
    return scores


def body(found: Shape, group: Group) -> Body:
    selection: Body = {"machineTypes": [found.machine]}
    if found.attached:
        kind = GPUS[found.gpu].type
        selection["guestAccelerators"] = [{"acceleratorType": kind, "acceleratorCount": found.gpus}]
    return {
        "size": max(1, group.size),
        "distributionPolicy": {
            "targetShape": "ANY",
            "zones": [{"zone": f"zones/{zone}"} for zone in group.zones],
        },
        "instanceFlexibilityPolicy": {"instanceSelections": {"machine": selection}},
        "instanceProperties": {"scheduling": {"provisioningModel": "SPOT" if group.spot else "STANDARD"}},
    }
