"""The managed groups of a fleet: one for each region, which goes through the zones of it by itself. Pure.

Between regions, and from spot to on demand, `capacity.decide` moves machines while a launch is watched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from hostler.backends.capacity import MachineGroup
from hostler.backends.gce.names import ON_DEMAND
from hostler.backends.gce.shape import VmShape

Body = dict[str, Any]


def path(group: MachineGroup) -> str:
    return f"regions/{group.region}/instanceGroupManagers/{group.name}"


def split(found: VmShape, name: str, workers: int) -> tuple[MachineGroup, ...]:
    """Groups whose sizes add up to `workers`; the regions named first get one more."""
    regions = list(found.regions.items())
    share, more = divmod(workers, len(regions))
    spot = bool(found.spot)
    return tuple(
        MachineGroup(region, name, zones, share + (n < more), spot)
        for n, (region, zones) in enumerate(regions)
    )


def instead(groups: Sequence[MachineGroup]) -> tuple[MachineGroup, ...]:
    """The groups that stand in for spot ones, on demand; empty until they are needed."""
    return tuple(replace(group, name=f"{group.name}{ON_DEMAND}", size=0, spot=False) for group in groups)


def body(group: MachineGroup, template: str, described: str, url: str) -> Body:
    """`url` is how resources of the project begin."""
    return {
        "name": group.name,
        "description": described,
        "baseInstanceName": group.name,
        "instanceTemplate": template,
        "targetSize": group.size,
        "distributionPolicy": {
            "zones": [{"zone": f"{url}zones/{zone}"} for zone in group.zones],
            "targetShape": "ANY",
        },
        "updatePolicy": {
            "type": "OPPORTUNISTIC",
            "minimalAction": "REPLACE",
            "instanceRedistributionType": "NONE",
            "maxSurge": {"fixed": 0},
            "maxUnavailable": {"fixed": len(group.zones)},
        },
    }
