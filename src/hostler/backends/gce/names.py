"""Owner of a thing on Compute Engine: its name, its labels and its description. Pure.

VMs and disks carry labels (`backends/cloud.py`); groups and templates take none, so a description says the
same there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from hostler.backends import cloud
from hostler.backends.base import Undone
from hostler.backends.cloud import FLEET, PROJECT, STORE
from hostler.spec.project import Fleet

ON_DEMAND = "-od"  # what ends the names of the group that stands in for spot
CHOSEN = "-w"  # what begins the end of the names of a group whose machines were chosen by price
KEPT = "keep"  # in the place of a generation: a VM for hand work


class GceOwner(cloud.Owner):
    """An owner as Compute Engine is asked for its things."""

    @property
    def filter(self) -> str:
        """Filter for lists of VMs or disks."""
        return " AND ".join(f"labels.{name}={value}" for name, value in self.labels.items())

    def describe(self, generation: int | str) -> str:
        said = {"by": "hostler", "project": self.project, "fleet": self.fleet}
        return json.dumps({**said, "generation": generation, "store": self.store})

    def owns(self, thing: Mapping[str, Any]) -> bool:
        """Whether something is this fleet's, by what it says of itself."""
        return labels_of(thing) == self.labels


def owner_of(fleet: Fleet) -> GceOwner:
    return GceOwner(*cloud.scope_of(fleet))


def labels_of(thing: Mapping[str, Any]) -> dict[str, str]:
    """Whose a thing is, in the words of labels: its own, or what the description of one without says."""
    if said := described(thing):
        return GceOwner(str(said["project"]), str(said["fleet"]), str(said["store"])).labels
    return {name: str((thing.get("labels") or {}).get(name, "")) for name in (PROJECT, FLEET, STORE)}


def described(thing: Mapping[str, Any]) -> dict[str, Any]:
    """Facts in the description of a group or template; nothing if hostler did not write it."""
    try:
        said = json.loads(thing.get("description") or "{}")
    except (ValueError, RecursionError):
        return {}
    ours = isinstance(said, dict) and said.get("by") == "hostler"
    return said if ours and {"project", "fleet", "store", "generation"} <= said.keys() else {}


def taken(thing: Mapping[str, Any], project: str) -> Undone:
    """Its name is wanted here, and it is somebody else's."""
    said = described(thing)
    whose = f"project {said['project']}, fleet {said['fleet']}, store {said['store']}" if said else ""
    return cloud.taken(str(thing["name"]), project, whose)


def generation_of(vm: str) -> str:
    """The launch that a VM or its disk came with, by its name; '' for one for hand work."""
    match = re.fullmatch(rf".*?-(\d+)(?:{ON_DEMAND}|{CHOSEN}[0-9a-f]{{5}})?-[a-z0-9]{{4}}", vm)
    return match[1] if match else ""


def last(url: object) -> str:
    """The last part of a resource's URL: its name, zone or region."""
    return str(url or "").rsplit("/", 1)[-1]


def region_of(zone: str) -> str:
    return zone.rpartition("-")[0]
