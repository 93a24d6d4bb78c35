"""The hourly price of a fleet at full size, on demand and spot, zone by zone, its disks included.

A cap counts with the dearest that the fleet may get: a machine
may come up in any of its zones, and `spot: prefer` may fall back to on demand.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from datetime import date
from functools import lru_cache
from pathlib import Path

from hostler import env, settings
from hostler.backends.prices import FleetPrice, TableAge, ZonePrice
from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec.nearest import did_you_mean, nearest
from hostler.spec.project import Fleet

MONTH = 730.0  # hours, as Google counts them
GB = 1e9
DISK = 50 * GB  # of a VM whose fleet names none
CUSTOM = 1.05  # a machine of one's own shape costs so much more than its parts
ZONES = 3  # that are named in the place of an unknown one

_CUSTOM = re.compile(r"(?:(\w+)-)?custom-(\d+)-(\d+)(?:-ext)?")
_SERIES = {"a2-highgpu": "A100", "a2-megagpu": "A100", "a2-ultragpu": "A100-80GB", "a3-highgpu": "H100"}
_SERIES |= {"a3-edgegpu": "H100", "a3-megagpu": "H100-MEGA", "a3-ultragpu": "H200", "a4-highgpu": "B200"}
_G2 = {24: 2, 48: 4, 96: 8}  # vCPUs → L4s; others have one


def price(fleet: Fleet, workers: int) -> FleetPrice:
    """By this machine's table and settings, read only for a fleet that names a machine type."""
    from hostler.backends.gce.wish import chosen, wishes  # which go by this table

    if wishes.is_wish(fleet):
        return chosen.price(fleet, workers)
    if not fleet.options.get("machine"):
        return FleetPrice(workers)
    fleet_price = by_table(fleet, workers, own_table(), settings.sizes().disk_price)
    return replace(fleet_price, days=age(own_table().date))


def with_machines(fleet: Fleet, own: FleetPrice) -> FleetPrice:
    """The price that a person gave, for each machine of a wish."""
    from hostler.backends.gce.wish import chosen, wishes  # which go by this table

    return chosen.at_price(fleet, own) if wishes.is_wish(fleet) else own


def own_table() -> PriceTable:
    return load(own_path())


def own_path() -> Path:
    """The table that this machine goes by: the one that the environment names, or the newer of the person's
    own and hostler's."""
    if path := env.prices():
        return path
    fetched = fetched_path()
    return fetched if fetched.is_file() and load(fetched).date >= load(OWN).date else OWN


def fetched_path() -> Path:
    """The table that `hostler prices update` writes."""
    return env.state_dir() / "prices" / OWN.name


def standing(today: date | None = None) -> TableAge:
    """The table that prices are taken from, and its age."""
    path = own_path()
    table = load(path)
    regions = {region for kind in table.machines.values() for region in kind.rates}
    whose = "comes with hostler" if path == OWN else str(path)
    return TableAge(
        "Google's prices", table.date, whose, age(table.date, today),
        f"{len(table.machines)} machine types, {len(table.gpus)} GPUs, {len(regions)} regions",
    )  # fmt: skip


def age(written: str, today: date | None = None) -> int | None:
    """Days since a table was written; None where its date is not one."""
    try:
        return ((today or date.today()) - date.fromisoformat(written)).days
    except ValueError:
        return None


def by_table(fleet: Fleet, workers: int, table: PriceTable, disk_price: float = 0.0) -> FleetPrice:
    """For so many workers of the fleet. `disk_price`: of a GB, a month. Pure."""
    spot = fleet.options.get("spot", True)
    zones = tuple(sorted(_zones(fleet, table, disk_price), key=lambda one: _dearest(one, spot) or 0.0))
    known = [cost for one in zones if (cost := _dearest(one, spot)) is not None]
    if not known:
        how = "spot" if spot is True else "on demand"
        raise UsageError(
            f"fleet {fleet.name}: {fleet.options['machine']} has no price {how} in its zones",
            hint="`price:` of one worker for an hour in the fleet",
        )
    return FleetPrice(workers, max(known), f"Google's prices of {table.date}", zones, spot)


def _dearest(one: ZonePrice, spot: bool | str) -> float | None:
    """Highest price of a worker in this zone."""
    if spot is True:
        return one.spot
    if spot is False or one.on_demand is None:
        return one.on_demand
    return max(one.on_demand, one.spot or 0.0)


def _zones(fleet: Fleet, table: PriceTable, disk_price: float) -> Iterator[ZonePrice]:
    machine, (gpu, count) = kind_of(fleet, table), _gpus(fleet, table)
    disk = disk_of(fleet, disk_price)
    prices = {zone: rate for zone, rate in spread(machine) if gpu is None or zone in dict(spread(gpu))}
    if not prices:
        raise UsageError(f"fleet {fleet.name}: no zone has {machine.name} with {gpu.name if gpu else ''}")
    for zone in _wanted(fleet, sorted(prices), machine.name):
        more = dict(spread(gpu))[zone] if gpu else RegionPrice("", 0.0, 0.0)
        yield ZonePrice(
            zone,
            total(prices[zone].on_demand, more.on_demand, count, disk),
            total(prices[zone].spot, more.spot, count, disk),
        )


def disk_of(fleet: Fleet, disk_price: float) -> float:
    """Price of a worker's disk, an hour. `disk_price`: of a GB, a month."""
    return float((fleet.options.get("disk") or DISK) / GB * disk_price / MONTH)


def total(machine: float | None, gpu: float | None, count: float, disk: float) -> float | None:
    return None if machine is None or gpu is None else round(machine + gpu * count + disk, 6)


def spread(kind: Kind) -> Iterator[tuple[str, RegionPrice]]:
    return ((f"{region}-{zone}", rate) for region, rate in kind.rates.items() for zone in rate.zones)


def _wanted(fleet: Fleet, known: Sequence[str], machine: str) -> list[str]:
    """The fleet's zones; a region stands for all of its own."""
    named = list(fleet.options.get("zones") or known)
    out = set(fleet.options.get("exclude_zones") or ())
    found: list[str] = []
    for name in named:
        of_it = [zone for zone in known if name in (zone, zone.rpartition("-")[0])]
        if not of_it:
            near = nearest(name, known, ZONES)
            raise UsageError(
                f"fleet {fleet.name}: no zone {name!r} with {machine} is known",
                hint=f"nearest: {', '.join(near or known[:ZONES])}; or `price:` of one worker for an hour",
            )
        found += of_it
    remaining = [zone for zone in dict.fromkeys(found) if not out & {zone, zone.rpartition("-")[0]}]
    if not remaining:
        raise UsageError(
            f"fleet {fleet.name}: all of its zones are excluded", hint="`zones`, `exclude_zones`"
        )
    return remaining


def kind_of(fleet: Fleet, table: PriceTable) -> Kind:
    name = str(fleet.options["machine"])
    if name in table.machines:
        return table.machines[name]
    custom = _CUSTOM.fullmatch(name)
    made = _custom(name, custom[1] or "n1", int(custom[2]), int(custom[3]) / 1024, table) if custom else None
    if made is None:
        raise UsageError(
            f"fleet {fleet.name}: the price of machine {name!r} is not known",
            hint=did_you_mean(name, table.machines, "`price:` of one worker for an hour in the fleet"),
        )
    return made


def _custom(name: str, family: str, vcpus: int, memory: float, table: PriceTable) -> Kind | None:
    """By the family's standard machines, for the larger of its parts: what it costs at most."""
    base = next((kind for key, kind in table.machines.items() if key.startswith(f"{family}-standard-")), None)
    if base is None:
        return None
    times = CUSTOM * max(vcpus / base.vcpus, memory / base.memory)
    scaled = {
        region: RegionPrice(rate.zones, _times(rate.on_demand, times), _times(rate.spot, times))
        for region, rate in base.rates.items()
    }
    return Kind(name, vcpus, memory, scaled)


def _times(cost: float | None, times: float) -> float | None:
    return None if cost is None else cost * times


def _gpus(fleet: Fleet, table: PriceTable) -> tuple[Kind | None, float]:
    """The GPUs of a VM: those its machine type comes with, or those it is given."""
    asked = fleet.options.get("gpu")
    if not asked:
        name, count = own_gpus(str(fleet.options["machine"]))
        if not name:
            return None, 0.0
        if name not in table.gpus:
            raise UsageError(
                f"fleet {fleet.name}: the price of {fleet.options['machine']}'s GPU, {name}, is not known",
                hint="`price:` of one worker for an hour in the fleet",
            )
        return table.gpus[name], count
    given, _, number = str(asked).partition(":")
    name = re.sub(r"^(nvidia-)?(tesla-)?", "", given.lower()).upper()
    if name not in table.gpus:
        raise UsageError(
            f"fleet {fleet.name}: the price of GPU {given!r} is not known",
            hint=did_you_mean(name, table.gpus, f"known: {', '.join(table.gpus)}"),
        )
    return table.gpus[name], float(number or 1)


def own_gpus(machine: str) -> tuple[str, float]:
    """GPU and count that a machine type comes with; a part of one for the smallest; ('', 0) for none."""
    series, _, size = machine.removesuffix("-nolssd").rpartition("-")
    if series in _SERIES and size.removesuffix("g").isdigit():
        return _SERIES[series], float(size.removesuffix("g"))
    if series == "g2-standard" and size.isdigit():
        return "L4", float(_G2.get(int(size), 1))
    if series == "g4-standard" and size.isdigit():
        return "RTXPRO6000", int(size) / 48
    return "", 0.0


# Google's prices as facts of a day: read from the table that comes with hostler, or from a person's own.
#
# The form is a line for each machine or GPU; `gce_prices.txt` says it at its top.


OWN = Path(__file__).parent / "gce_prices.txt"


@dataclass(frozen=True)
class RegionPrice:
    """In one region: which zones have it, and what it costs an hour; None where it is not sold so."""

    zones: str  # their letters
    on_demand: float | None
    spot: float | None


@dataclass(frozen=True)
class Kind:
    """A machine type, or a GPU."""

    name: str
    vcpus: float = 0.0
    memory: float = 0.0  # GiB
    rates: Mapping[str, RegionPrice] = field(default_factory=dict)  # region → rate


@dataclass(frozen=True)
class PriceTable:
    date: str
    machines: Mapping[str, Kind]
    gpus: Mapping[str, Kind]


@lru_cache(maxsize=2)
def load(path: Path = OWN) -> PriceTable:
    """The table of a file; UsageError with its line where it is none."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "is not text"
        raise UsageError(f"{path}: {why}", hint="HOSTLER_PRICES names a table of prices") from None
    return parse(lines, path)


def parse(lines: Iterable[str], path: Path) -> PriceTable:
    """The table of these lines of a file. Pure."""
    written, machines, gpus = "", dict[str, Kind](), dict[str, Kind]()
    for n, line in enumerate(lines, start=1):
        words = line.split()
        if not words or words[0].startswith("#"):
            continue
        try:
            if words[0] == "date":
                written = words[1]
            elif words[0] == "machine":
                vcpus, memory = _amount(words[2]), _amount(words[3])
                machines[words[1]] = Kind(words[1], vcpus, memory, _rates(words[4:]))
            elif words[0] == "gpu":
                gpus[words[1]] = Kind(words[1], rates=_rates(words[2:]))
            else:
                raise ValueError(f"{words[0]!r} is neither machine, gpu nor date")
        except (ValueError, IndexError) as error:
            said = str(error) if isinstance(error, ValueError) else "the line is cut short"
            raise UsageError(f"{path}:{n}: {said}", hint=_form(path)) from None
    return PriceTable(written, machines, gpus)


def _form(path: Path) -> str:
    fetched = path == fetched_path()
    return "hostler prices update writes it anew" if fetched else f"the form is that of {OWN.name}"


def _rates(words: Iterable[str]) -> dict[str, RegionPrice]:
    prices = {}
    for word in words:
        parts = word.split(":")
        if len(parts) != 4:
            raise ValueError(f"{word!r} is not REGION:ZONES:ON_DEMAND:SPOT")
        prices[parts[0]] = RegionPrice(parts[1], _price(parts[2]), _price(parts[3]))
    return prices


def _amount(text: str) -> float:
    """CPUs or GiB of a machine."""
    value = _number(text)
    if not 0 < value < float("inf"):
        raise ValueError(f"{text} is not an amount of CPUs or memory")
    return value


def _price(text: str) -> float | None:
    if text == "-":
        return None
    value = _number(text)
    if not 0 <= value < float("inf"):
        raise ValueError(f"{text} is not a price")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number") from None
