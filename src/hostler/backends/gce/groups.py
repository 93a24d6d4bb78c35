"""The managed groups of a fleet: one for each region, and what to do while they fill. Pure.

Inside a region the group itself goes from a zone that has none left to the next (target shape ANY). Between
regions, and from spot to on demand, nobody would: `decide` does, while somebody watches the launch.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hostler.backends.gce.names import ON_DEMAND
from hostler.backends.gce.reasons import REGION, STOP, ZONE, Reason
from hostler.backends.gce.shape import Shape

Body = dict[str, Any]


@dataclass(frozen=True)
class Group:
    """A group as it is to be made."""

    region: str
    name: str
    zones: tuple[str, ...]
    size: int
    spot: bool = True

    @property
    def path(self) -> str:
        return f"regions/{self.region}/instanceGroupManagers/{self.name}"


@dataclass(frozen=True)
class Filling:
    """How far a group is."""

    group: Group
    target: int
    running: int
    why: tuple[Reason, ...] = ()  # that its last attempts failed

    @property
    def is_out(self) -> bool:
        """It wants more, and was told that there are none."""
        return self.is_short and any(one.then in (ZONE, REGION) for one in self.why)

    @property
    def is_short(self) -> bool:
        return self.target > self.running

    @property
    def is_refused(self) -> bool:
        """It wants more, and who waits for them now waits in vain."""
        return self.is_out or (self.is_short and any(one.then == STOP for one in self.why))


@dataclass(frozen=True)
class Wait:
    """Nothing is to be done."""


@dataclass(frozen=True)
class Ready:
    """As many run as were wanted, or some do and the rest will come."""


@dataclass(frozen=True)
class Move:
    """What one group does not get, another tries."""

    sizes: tuple[tuple[Group, int], ...]


@dataclass(frozen=True)
class GiveUp:
    why: str
    hint: str
    later: bool  # it may work another time


def split(found: Shape, name: str, workers: int) -> tuple[Group, ...]:
    """Groups whose sizes add up to `workers`; the regions named first get one more."""
    regions = list(found.regions.items())
    share, more = divmod(workers, len(regions))
    spot = bool(found.spot)
    return tuple(
        Group(region, name, zones, share + (n < more), spot) for n, (region, zones) in enumerate(regions)
    )


def instead(groups: Sequence[Group]) -> tuple[Group, ...]:
    """The groups that stand in for spot ones, on demand; empty until they are needed."""
    return tuple(replace(group, name=f"{group.name}{ON_DEMAND}", size=0, spot=False) for group in groups)


def body(group: Group, template: str, described: str, url: str) -> Body:
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


def decide(
    fillings: Sequence[Filling],
    spare: Sequence[Group],
    *,
    waited: float,
    patience: float,
    settled: float,
    advice: Mapping[str, float] | None = None,
    left: Collection[Group] = (),
) -> Wait | Ready | Move | GiveUp:
    """What the launch of a fleet does next. `spare` groups stand in when every other one is out; `settled`
    seconds are given to a group to try all of its zones. `advice`: how likely a region has some: 0 to 1.
    A group of `left` was out before: nothing moves back to it, so that moving has an end."""
    scores = advice or {}
    running, wanted = sum(f.running for f in fillings), sum(f.target for f in fillings)
    stops = [why for f in fillings for why in f.why if why.then == STOP]
    if not running and stops:
        return GiveUp(stops[0].words, stops[0].hint, later=False)
    if running >= wanted:
        return Ready()
    out = [f for f in fillings if f.is_out and (waited >= settled or scores.get(f.group.region) == 0)]
    others = [f for f in fillings if not f.is_out and f.group not in left]
    hopeful = any(f.is_out and f not in out for f in fillings)  # they still have time
    if out and (moved := _moved(out, others, () if hopeful else spare, scores)):
        return moved
    if running and waited >= settled and all(f.is_refused for f in fillings if f.is_short):
        return Ready()
    if waited < patience:
        return Wait()
    if running:
        return Ready()
    said, hints = refusals(fillings), [why.hint for f in fillings for why in f.why if why.hint]
    return GiveUp(
        f"no VM came within {patience:g} s{f' ({said})' if said else ''}", (hints or [_LATER])[0], later=True
    )


def refusals(fillings: Sequence[Filling]) -> str:
    """What the regions said, each once."""
    return "; ".join(dict.fromkeys(f"{f.group.region}: {why.words}" for f in fillings for why in f.why))


_LATER = "try later, name other zones or another machine, or `spot: prefer`"


def _moved(
    out: Sequence[Filling], others: Sequence[Filling], spare: Sequence[Group], scores: Mapping[str, float]
) -> Move | None:
    """Targets where what is missing is asked for elsewhere, likely places first; None if there is none."""
    likely = sorted(others, key=lambda f: -scores.get(f.group.region, 0.5))
    if likely:
        into, there = likely[0].group, likely[0].target
    elif spare:
        into, there = spare[0], 0
    else:
        return None
    missing = sum(f.target - f.running for f in out)
    return Move(((into, there + missing), *((f.group, f.running) for f in out)))
