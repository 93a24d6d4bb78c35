"""Groups of a fleet's machines, one for each region, and the decisions of a launch while they fill. Pure.

A platform's own `capacity.py` says which groups a fleet has and how large its machines are. A launch and
`hostler simulate` ask the same functions.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from hostler.backends.cloud import GiveUp, KeepWaiting, Ready
from hostler.frozen import dataclass

ZONE, REGION, AGAIN, STOP = "zone", "region", "again", "stop"


@dataclass(frozen=True)
class Reason:
    """Why a platform gave no machine, and what follows: another zone or region, once more, or the end."""

    then: str  # zone, region, again or stop
    words: str
    hint: str = ""


OUT = Reason(ZONE, "the zone has none left now")


@dataclass(frozen=True)
class Size:
    """Size of a machine; memory in bytes."""

    cpus: float
    memory: int
    gpus: int = 0
    gpu_memory: int = 0  # of one GPU


@dataclass(frozen=True)
class MachineGroup:
    """Machines of one region, as they are to be asked for."""

    region: str
    name: str
    zones: tuple[str, ...]
    size: int
    spot: bool = True


@dataclass(frozen=True)
class Filling:
    """How far a group is."""

    group: MachineGroup
    target: int
    running: int
    why: tuple[Reason, ...] = ()  # that its last attempts failed

    @property
    def is_out(self) -> bool:
        """It wants more, and was told that there are none."""
        return self.is_short and any(reason.then in (ZONE, REGION) for reason in self.why)

    @property
    def is_short(self) -> bool:
        return self.target > self.running

    @property
    def is_refused(self) -> bool:
        """It wants more, and who waits for them now waits in vain."""
        return self.is_out or (self.is_short and any(reason.then == STOP for reason in self.why))


@dataclass(frozen=True)
class Move:
    """Machines that one group does not get are tried in another."""

    sizes: tuple[tuple[MachineGroup, int], ...]


def decide(
    fillings: Sequence[Filling],
    spare: Sequence[MachineGroup],
    *,
    waited: float,
    patience: float,
    settled: float,
    advice: Mapping[str, float] | None = None,
    left: Collection[MachineGroup] = (),
) -> KeepWaiting | Ready | Move | GiveUp:
    """Decide a launch's next step. `spare` groups stand in when every other one is out; `settled`
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
        return KeepWaiting()
    if running:
        return Ready()
    text, hints = refusals(fillings), [why.hint for f in fillings for why in f.why if why.hint]
    return GiveUp(
        f"no VM came within {patience:g} s{f' ({text})' if text else ''}", (hints or [_LATER])[0], later=True
    )


def refusals(fillings: Sequence[Filling]) -> str:
    """Refusals of the regions, each once."""
    return "; ".join(dict.fromkeys(f"{f.group.region}: {why.words}" for f in fillings for why in f.why))


_LATER = "try later, name other zones or another machine, or `spot: prefer`"


def _moved(
    out: Sequence[Filling],
    others: Sequence[Filling],
    spare: Sequence[MachineGroup],
    scores: Mapping[str, float],
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
