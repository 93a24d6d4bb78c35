"""A managed instance group: its resource and its members; which of them go and which come is decided here.

The decisions are pure. `keeper.py` carries them out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hostler.emulators.gce.api.links import Scope

CREATING, RECREATING, DELETING, NONE = "CREATING", "RECREATING", "DELETING", "NONE"


@dataclass
class Member:
    name: str
    zone: str
    action: str = CREATING
    busy: bool = False  # a machine for it is being made
    retry_at: float = 0.0
    errors: list[dict[str, Any]] = field(default_factory=list)  # of the last attempt


@dataclass
class Group:
    scope: Scope
    body: dict[str, Any]
    members: list[Member] = field(default_factory=list)
    failed_in: dict[str, float] = field(default_factory=dict)  # when there was nothing to be had in a zone
    errors: list[dict[str, Any]] = field(default_factory=list)
    when_gone: list[Callable[[], None]] = field(default_factory=list)  # not empty: it is being deleted

    @property
    def name(self) -> str:
        return str(self.body["name"])

    @property
    def path(self) -> str:
        return self.scope.of("instanceGroupManagers", self.name)

    @property
    def target(self) -> int:
        return int(self.body["targetSize"])

    @target.setter
    def target(self, size: int) -> None:
        self.body["targetSize"] = max(0, size)

    @property
    def staying(self) -> list[Member]:
        return [member for member in self.members if member.action != DELETING]

    @property
    def repairs(self) -> bool:
        policy = self.body.get("instanceLifecyclePolicy", {})
        return str(policy.get("defaultActionOnFailure", "REPAIR")) == "REPAIR"

    @property
    def moves(self) -> bool:
        """Whether a machine may go to another zone than the even share would put it in."""
        return str(self.body.get("distributionPolicy", {}).get("targetShape", "EVEN")) in ("ANY", "BALANCED")

    def member(self, zone: str, name: str) -> Member | None:
        return next((one for one in self.members if (one.zone, one.name) == (zone, name)), None)


def surplus(group: Group) -> list[Member]:
    """Members to delete for the target size: first those that never ran, then the youngest."""
    over = len(group.staying) - group.target
    order = sorted(enumerate(group.staying), key=lambda one: (one[1].action == NONE, -one[0]))
    return [member for _, member in order[: max(0, over)]]


def choose_zone(group: Group, zones: Sequence[str]) -> str:
    """Where the next machine goes: where nothing failed lately, in the list's order; or evenly."""
    here = {zone: sum(member.zone == zone for member in group.staying) for zone in zones}

    def worth(zone: str) -> tuple[float, int, int]:
        failed = group.failed_in.get(zone, -1.0) if group.moves else -1.0
        return failed, 0 if group.moves else here[zone], zones.index(zone)

    return min(zones, key=worth)
