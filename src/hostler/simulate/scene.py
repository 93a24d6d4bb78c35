"""A simulated fleet with its sweep: everything the virtual clock needs to know."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from hostler.backends.capacity import MachineGroup
from hostler.frozen import dataclass
from hostler.records.sweep.target import Target
from hostler.settings import Timing
from hostler.simulate.times import VaryingSeconds
from hostler.spec.job import Job


@dataclass(frozen=True)
class Scene:
    """Times are seconds since the launch. Machines of runs that take several count as one."""

    fleet: str
    job: Job  # its retries and `parallel` count
    runs: int
    workers: int
    groups: tuple[MachineGroup, ...]  # which machines are asked for where; one for a fleet without zones
    length: VaryingSeconds  # of a run that nobody disturbs
    every: float  # between two checkpoints
    timing: Timing
    spare: tuple[MachineGroup, ...] = ()  # that stand in where every other one is out
    doubt: float = 0.0  # how wrong the length of runs may be as a whole: a share of it
    seats: int = 1  # runs at once on one machine
    save: float = 0.0  # the training stands still for a checkpoint, and as long for going on from one
    gap: VaryingSeconds = field(default_factory=VaryingSeconds)  # from a run's end to the next one's start
    prices: Mapping[tuple[str, bool], float] = field(default_factory=dict)  # (zone, spot) → an hour
    waits_free: bool = False  # waiting costs nobody anything
    lasts: float | None = None  # the launch is gone then: its deadline, or what its money buys
    each: int | None = None  # runs that a worker ends before it goes
    replaced: bool = False  # and another comes in its place
    limit: float | None = None  # the engine ends a worker after so long, and starts it anew
    target: Target | None = None  # `by` counts from the launch; more workers are asked for where it is late
    slower: tuple[float, float] = (0.0, 1.0)  # after so many seconds, work takes so many times as long
