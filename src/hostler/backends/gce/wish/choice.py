"""Machines for a wish, the cheapest first, and the reason of everything that was left out. Pure.

A candidate is a machine type with its GPUs in one region, spot or on demand: within a region prices are
equal, and a managed group goes through the zones by itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field, replace

from hostler.backends.gce import prices
from hostler.backends.gce import shape as shapes
from hostler.backends.gce.prices import Kind, PriceTable, RegionPrice
from hostler.backends.gce.wish import limits, places
from hostler.backends.gce.wish.quotas import Quotas
from hostler.backends.gce.wish.wishes import MachineWish
from hostler.frozen import dataclass

SPOT, PAID = "spot", "on demand"
LOCAL_SSD = "-lssd"  # at the end of a machine type that comes with some


@dataclass(frozen=True)
class Candidate:
    machine: str
    gpu: str  # '' for none
    gpus: int
    region: str
    zones: tuple[str, ...]
    spot: bool
    price: float  # of one worker, an hour, disk included
    cpus: float = 0.0
    memory: float = 0.0  # GiB

    @property
    def what(self) -> str:
        own = shapes.inside_of(self.machine)[1]
        return self.machine if own or not self.gpu else f"{self.machine} with {self.gpus} × {self.gpu}"

    def __str__(self) -> str:
        return f"{self.what} in {self.region}, {SPOT if self.spot else PAID}"


@dataclass(frozen=True)
class NotChosen:
    """All machines that have what is named here; what is not named is any."""

    why: str
    machine: str = ""
    gpu: str = ""  # T4:1
    zone: str = ""  # or a region
    spot: bool | None = None

    def covers(self, machine: str, gpu: str, zone: str, *, spot: bool) -> bool:
        return (
            self.machine in ("", machine)
            and self.gpu in ("", gpu)
            and (not self.zone or places.lies_in(zone, self.zone))
            and self.spot in (None, spot)
        )

    @property
    def what(self) -> str:
        model = "" if self.spot is None else SPOT if self.spot else PAID
        named = [self.machine, self.gpu and f"with {self.gpu}", self.zone and f"in {self.zone}", model]
        return " ".join(filter(None, named)).removeprefix("in ").removeprefix("with ")


@dataclass(frozen=True)
class Candidates:
    found: tuple[Candidate, ...]  # the cheapest first
    left_out: tuple[NotChosen, ...] = field(default_factory=tuple)


def choose(
    wish: MachineWish, table: PriceTable, quotas: Quotas | None = None, disk: float = 0.0
) -> Candidates:
    """All that fits the wish. `disk`: price of a worker's disk, an hour."""
    candidates: list[Candidate] = []
    out = [*_models(wish), *_zones(wish, table, quotas or Quotas())]
    for kind in table.machines.values():
        for gpu, count, why in _cards(wish, kind):
            if why:
                out.append(NotChosen(why, kind.name, f"{gpu}:{count}" if gpu else ""))
                continue
            for one in _in_regions(wish, table, kind, gpu, count, quotas or Quotas(), disk):
                (candidates if isinstance(one, Candidate) else out).append(one)  # type: ignore[arg-type]
    order = sorted(candidates, key=lambda one: (one.price, one.machine, one.gpu, one.region, not one.spot))
    return Candidates(tuple(order), tuple(dict.fromkeys(out)))


def _models(wish: MachineWish) -> Iterator[NotChosen]:
    if wish.spot is True:
        yield NotChosen("`spot: prefer` would take them", spot=False)
    elif wish.spot is False:
        yield NotChosen("`spot: false`", spot=True)


def _zones(wish: MachineWish, table: PriceTable, quotas: Quotas) -> Iterator[NotChosen]:
    """Zones and whole regions that the wish or the project does not have."""
    spread: dict[str, set[str]] = {}
    for kind in table.machines.values():
        for zone, _ in prices.spread(kind):
            spread.setdefault(zone.rpartition("-")[0], set()).add(zone)
    for region, zones in sorted(spread.items()):
        whys = {zone: _why_not(wish, zone, quotas) for zone in sorted(zones)}
        if len(set(whys.values())) == 1:
            why = next(iter(whys.values()))
            yield from [NotChosen(why, zone=region)] if why else []
        else:
            yield from (NotChosen(why, zone=zone) for zone, why in whys.items() if why)


def _why_not(wish: MachineWish, zone: str, quotas: Quotas) -> str:
    if not wish.takes(zone):
        return f"not in `zones: {', '.join(wish.places)}`"
    if wish.excludes(zone):
        return "`exclude_zones`"
    return "the project has no such zone" if quotas.zones and zone not in quotas.zones else ""


def _cards(wish: MachineWish, kind: Kind) -> Iterator[tuple[str, int, str]]:
    """GPUs that a machine type may have by this wish, each with '' or the reason why it is left out."""
    for gpu, count, why in _fitting(wish, kind):
        small = gpu and wish.outgrown and shapes.gpu_bytes(gpu) <= wish.outgrown
        yield gpu, count, why or ("a run was out of memory on such a GPU" if small else "")


def _fitting(wish: MachineWish, kind: Kind) -> Iterator[tuple[str, int, str]]:
    """The same, but for sizes that the sweep has outgrown."""
    inside, own = shapes.inside_of(kind.name), prices.own_gpus(kind.name)[1]
    if why := _unfit(wish, kind):
        yield "", 0, why
    elif not wish.gpus:
        bare = not own or wish.machine
        yield (*inside, _unusual(wish, kind.name, *inside) if bare else "it has GPUs, and no `gpu` is given")
    elif inside in wish.gpus:
        yield (*inside, _unusual(wish, kind.name, *inside))
    elif own or all(limits.attach_problem(kind.name, *one) for one in wish.gpus):
        yield "", 0, "it does not have the GPUs"
    else:
        for gpu, count in wish.gpus:
            alone = limits.attach_problem(kind.name, gpu, count)
            yield gpu, count, "they do not go together" if alone else _unusual(wish, kind.name, gpu, count)


def _unfit(wish: MachineWish, kind: Kind) -> str:
    """Reason that lies in the machine type alone."""
    if wish.machine and kind.name != wish.machine:
        return f"not `machine: {wish.machine}`"
    if not wish.machine and kind.name.endswith(LOCAL_SSD):
        return "the price table has no local SSDs; `machine: NAME` would take it"
    if wish.cpus and not wish.cpus.holds(kind.vcpus):
        return f"not `cpus: {wish.cpus.text}`"
    if wish.memory and not wish.memory.holds(kind.memory):
        return f"not `memory: {wish.memory.text}`"
    return ""


def _unusual(wish: MachineWish, machine: str, gpu: str, count: int) -> str:
    fits = not wish.usual or (machine, gpu, count) in wish.usual
    return "" if fits else "another size is usual; `machine: any`, `cpus` or `memory` would take it"


def _in_regions(
    wish: MachineWish, table: PriceTable, kind: Kind, gpu: str, count: int, quotas: Quotas, disk: float
) -> Iterator[Candidate | NotChosen]:
    name, number = prices.own_gpus(kind.name)
    card = table.gpus.get(name or gpu) if name or gpu else Kind("")
    mark = f"{gpu}:{count}" if gpu else ""
    if card is None:  # it would be had for nothing
        yield NotChosen(f"the price of {name or gpu} is not known", kind.name, mark)
        return
    for region, rate in kind.rates.items():
        zones = [zone for zone in _of(region, rate) if not _why_not(wish, zone, quotas)]
        price = card.rates.get(region) if card.name else RegionPrice(rate.zones, 0.0, 0.0)
        both = [zone for zone in zones if price and zone in _of(region, price)]
        lost = zones if not both else [zone for zone in zones if zone not in both]
        for zone in lost:
            yield NotChosen(f"no {name or gpu} there", kind.name, mark, zone)
        if not both or price is None:
            continue
        made = Candidate(kind.name, gpu, count, region, tuple(both), True, 0.0, kind.vcpus, kind.memory)
        for spot in (True, False):
            if wish.spot not in (spot, "prefer"):
                continue
            parts = (rate.spot, price.spot) if spot else (rate.on_demand, price.on_demand)
            cost = prices.total(*parts, number or count, disk)
            yield _priced(replace(made, spot=spot), cost, quotas, mark)


def _priced(one: Candidate, cost: float | None, quotas: Quotas, mark: str) -> Candidate | NotChosen:
    lack = quotas.lack(one.region, one.machine, one.cpus, one.gpu, one.gpus, spot=one.spot)
    if cost is not None and not lack:
        return replace(one, price=cost)
    return NotChosen(lack or "it has no price", one.machine, mark, one.region, one.spot)


def _of(region: str, rate: RegionPrice) -> list[str]:
    return [f"{region}-{letter}" for letter in rate.zones]


# The nearest that would fit, where nothing does.


def nearest(
    wish: MachineWish, table: PriceTable, quotas: Quotas, disk: float = 0.0
) -> tuple[str, Candidate] | None:
    """Smallest change of a wish with which something fits, in words, and the one that comes nearest then;
    None where no single change helps."""
    for words, changed, allowed in _changes(wish, quotas):
        if candidates := choose(changed, table, allowed, disk).found:
            return words, _closest(wish, candidates)
    return None


def _closest(wish: MachineWish, found: Sequence[Candidate]) -> Candidate:
    """Choose the one that comes nearest to the size that was asked for; then the cheapest."""

    def distance(one: Candidate) -> tuple[float, float]:
        cpus = abs(one.cpus - wish.cpus.amount) / wish.cpus.amount if wish.cpus else 0.0
        memory = abs(one.memory - wish.memory.amount) / wish.memory.amount if wish.memory else 0.0
        return cpus + memory, one.price

    return min(found, key=distance)


def _changes(wish: MachineWish, quotas: Quotas) -> Iterator[tuple[str, MachineWish, Quotas]]:
    """Changes of a wish, those that take the least away first."""
    free = replace(wish, usual=frozenset())
    if wish.usual:
        yield "`machine: any`", free, quotas
    if wish.spot is True:
        yield "`spot: prefer`", replace(wish, spot="prefer"), quotas
    if wish.out:
        yield "fewer `exclude_zones`", replace(wish, out=frozenset()), quotas
    if places.ANY not in wish.places:
        yield "`zones: any`", replace(wish, places=(places.ANY,)), quotas
    if quotas.left:
        yield "more quota", wish, Quotas(quotas.zones)
    if wish.cpus:
        yield "other `cpus`", replace(wish, cpus=None), quotas
    if wish.memory:
        yield "other `memory`", replace(wish, memory=None), quotas
    for gpu, count in _larger(wish):
        yield f"`gpu: {gpu}:{count}`", replace(free, gpus=((gpu, count),)), quotas
    for gpu, count in _other_counts(wish):
        yield f"`gpu: {gpu}:{count}`", replace(free, gpus=((gpu, count),)), quotas
    if wish.cpus or wish.memory:
        yield "another size", replace(wish, cpus=None, memory=None), quotas


def _larger(wish: MachineWish) -> list[tuple[str, int]]:
    """GPUs that have more memory than those which runs were out of memory on, the smallest first."""
    counts = {count for _, count in wish.gpus} if wish.outgrown else set()
    sizes = sorted((gpu.memory, name) for name, gpu in shapes.GPUS.items())
    large = [name for _, name in sizes if shapes.gpu_bytes(name) > wish.outgrown]
    return [
        (name, count) for name in large for count in sorted(counts) if count in shapes.GPUS[name].machines
    ]


def _other_counts(wish: MachineWish) -> list[tuple[str, int]]:
    """The same GPUs in other numbers, the nearest number first."""
    found = [
        (abs(number - count), name, number)
        for name, count in wish.gpus
        for number in shapes.GPUS[name].machines
        if number != count
    ]
    return [(name, number) for _, name, number in sorted(found)]
