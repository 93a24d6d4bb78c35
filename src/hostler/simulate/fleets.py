"""Turns a project's fleet into a scene: its size, prices, groups, and its machines' behaviour."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from typing import Any

from hostler.backends import registry
from hostler.backends.base import Capabilities
from hostler.backends.capacity import MachineGroup, Size
from hostler.backends.prices import FleetPrice
from hostler.errors import UsageError
from hostler.fleet.fleet_choice import completed
from hostler.fleet.launcher import Launcher
from hostler.frozen import dataclass
from hostler.money import funding
from hostler.money.tariff import Asked
from hostler.settings import Timing
from hostler.simulate.rates import PreemptionRate
from hostler.simulate.scene import Scene
from hostler.simulate.times import VaryingSeconds
from hostler.simulate.weather import Habits
from hostler.spec.job import Job, Resources
from hostler.spec.project import Fleet
from hostler.store import Store
from hostler.store.registry import is_folder
from hostler.worker.claim.slots import Device, Offer, Placement, place

VMS = Habits(VaryingSeconds((), 10, 30), VaryingSeconds((), 60, 150), VaryingSeconds((), 15, 45), notice=30.0)
WORKERS = Habits(VaryingSeconds(), VaryingSeconds((), 1, 3), VaryingSeconds((), 0, 2), notice=30.0)
GAP = VaryingSeconds((), 0, 2)
BUCKET = "gs://bucket/runs"  # stands for one that machines elsewhere would reach
UNKNOWN = 1 << 60  # of memory, where nobody has looked


@dataclass(frozen=True)
class SimulatedSweep:
    """The sweep to simulate, and what is known of its runs."""

    job: Job
    runs: int
    length: VaryingSeconds
    every: float
    save: float
    gap: VaryingSeconds = GAP
    doubt: float = 0.0


@dataclass(frozen=True)
class Setting:
    """A fleet as it would be launched."""

    scene: Scene
    habits: Habits
    rate: PreemptionRate = field(default_factory=PreemptionRate)
    spot: bool = False  # its machines may be taken away by their platform, or by others who wait for them
    priced: bool = True
    zones: tuple[str, ...] = ()


def setting(
    workers: Launcher, store: Store, sweep: SimulatedSweep, timing: Timing, scale: float = 1.0
) -> Setting:
    """The fleet with this sweep before it; UsageError where it would be refused, or cannot work. `scale`: so
    much faster than the workers' is the platform's clock."""
    does, nodes = workers.engine.capabilities, sweep.job.resources.nodes
    asked, count = teams(workers, sweep.job, sweep.runs)
    fleet = completed(workers.engine, workers.fleet)
    _check(fleet, asked, count, nodes)
    funded = funding.foresee(store, asked, timing)
    made, spare = _groups(fleet, count)
    each, replaced = _each(fleet, does, sweep.runs)
    scene = Scene(
        fleet=fleet.name,
        job=sweep.job,
        runs=sweep.runs,
        workers=count,
        groups=made,
        spare=spare,
        length=sweep.length,
        every=sweep.every,
        save=sweep.save,
        gap=sweep.gap,
        doubt=sweep.doubt,
        timing=scaled(timing, scale),
        seats=seats(fleet, sweep.job.resources),
        prices=prices(asked.price, (*made, *spare), nodes),
        waits_free=not does.billed and not does.shared,
        lasts=funded.seconds,
        each=each,
        replaced=replaced,
        limit=_limit(fleet, does),
    )
    zones = tuple(dict.fromkeys(zone for group in made for zone in group.zones if zone))
    spot = made[0].spot and (does.makes_machines or does.shared)
    habits = VMS if does.makes_machines else WORKERS
    return Setting(scene, habits, spot=spot, priced=asked.price.worker is not None, zones=zones)


def teams(workers: Launcher, job: Job, runs: int) -> tuple[Asked, int]:
    """The launch as its money is asked for, and how many runs of several nodes its workers can have at once:
    what a scene counts as its workers."""
    does = workers.engine.capabilities
    if does.makes_machines and is_folder(workers.url):  # what it costs does not depend on the store
        workers = replace(workers, url=BUCKET)
    asked = workers.asked([job], runs)
    count = asked.price.workers
    return asked, count if does.gangs else count // job.resources.nodes


def scaled(timing: Timing, factor: float) -> Timing:
    """The same times, by a clock that runs so much faster."""
    return replace(timing, **{one.name: getattr(timing, one.name) * factor for one in fields(timing)})


def prices(price: FleetPrice, made: tuple[MachineGroup, ...], nodes: int) -> Mapping[tuple[str, bool], float]:
    """(zone, spot) → what a machine there costs an hour; all machines of a run count as one."""
    by_zone = {zone_price.zone: zone_price for zone_price in price.zones}
    found: dict[tuple[str, bool], float] = {}
    for group in made:
        for zone in group.zones:
            one = by_zone.get(zone)
            own = (one.spot if group.spot else one.on_demand) if one else None
            found[zone, group.spot] = (own if own is not None else price.usual or 0.0) * nodes
    return found


def seats(fleet: Fleet, ask: Resources) -> int:
    """The number of runs that fit on one worker at once, by the worker's own rule."""
    offer, taken = _offer(fleet, ask), list[Placement]()
    while isinstance(found := place(offer, taken, ask), Placement):
        taken.append(found)
        if len(taken) >= (fleet.slots or math.inf):
            break
    if not taken:
        raise UsageError(f"fleet {fleet.name}: a run does not fit on one of its machines: {found}")
    return len(taken)


def _offer(fleet: Fleet, ask: Resources) -> Offer:
    size: Size | None = _capacity(fleet, "size", lambda fleet: None)(fleet)
    if size is None:  # nobody has looked at it: what a run takes is taken to be there, once
        gpus = max(1, math.ceil(ask.gpus)) if ask.gpus or ask.gpu_memory else 0
        devices = tuple(Device(str(n), ask.gpu_memory or 0) for n in range(gpus))
        whole = fleet.slots is None and not 0 < ask.gpus < 1
        slots = 1 if whole else fleet.slots
        return Offer(UNKNOWN, UNKNOWN, devices, slots)
    devices = tuple(Device(str(n), size.gpu_memory) for n in range(size.gpus))
    return Offer(size.cpus, size.memory, devices, fleet.slots)


def _groups(fleet: Fleet, count: int) -> tuple[tuple[MachineGroup, ...], tuple[MachineGroup, ...]]:
    """The groups that are made at once, and those that stand in."""
    made: tuple[tuple[MachineGroup, ...], tuple[MachineGroup, ...]] = _capacity(fleet, "split", _one_group)(
        fleet, count
    )
    return made


def _one_group(fleet: Fleet, count: int) -> tuple[tuple[MachineGroup, ...], tuple[MachineGroup, ...]]:
    return (MachineGroup("", fleet.name, ("",), count),), ()


def _capacity(fleet: Fleet, name: str, otherwise: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the platform's `capacity.py`, or what stands for it where it has none."""
    known: Callable[..., Any] = getattr(registry.part(fleet.backend, "capacity"), name, otherwise)
    return known


def _each(fleet: Fleet, does: Capabilities, runs: int) -> tuple[int | None, bool]:
    """The number of runs a worker ends before it leaves, and whether another replaces it."""
    if does.shared:
        each: int | None = _capacity(fleet, "runs_each", _as_told)(fleet, runs)
        return each, fleet.runs_per_worker is None
    return (None if does.makes_machines else fleet.runs_per_worker), False


def _as_told(fleet: Fleet, runs: int) -> int | None:
    return fleet.runs_per_worker


def _limit(fleet: Fleet, does: Capabilities) -> float | None:
    given = fleet.options.get("time") if does.shared else None
    return float(given) if given else None


def _check(fleet: Fleet, asked: Asked, count: int, nodes: int) -> None:
    if not asked.price.workers:
        raise UsageError(
            f"fleet {fleet.name} has no workers", hint=f"set `workers:` of {fleet.name} in hostler.yaml"
        )
    if not count:
        raise UsageError(
            f"a run takes {nodes} workers at once, but {fleet.name} has {asked.price.workers}",
            hint=f"set workers: {nodes} under fleets, or fewer resources.nodes",
        )
