"""The machines that a fleet with wishes gets: its candidates by this machine's table, their price, the words.

Everybody who asks gets the same candidates: `plan`, the price, the launch. Of a fleet without wishes nothing
is asked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import groupby

from hostler import settings
from hostler.backends.base import OUTGROWN, PACES, MachinePaces
from hostler.backends.gce import prices
from hostler.backends.gce import shape as shapes
from hostler.backends.gce.wish import choice, places, wishes
from hostler.backends.gce.wish.choice import Candidate, Candidates, NotChosen
from hostler.backends.gce.wish.quotas import Quotas
from hostler.backends.prices import FleetPrice, PriceOffer
from hostler.errors import UsageError
from hostler.spec.project import Fleet
from hostler.spec.units import counted, show_money

TRIES = 24  # candidates that a launch goes through
NAMED = 3  # things left out for one reason that are named; else they are counted
QUOTAS, BUCKETS = "quotas", "buckets"  # keys of what the platform told


def candidates(fleet: Fleet) -> Candidates:
    """UsageError with the nearest that would fit, where nothing does."""
    table, quotas = prices.own_table(), fleet.known.get(QUOTAS) or Quotas()
    regions = {region for kind in table.machines.values() for region in kind.rates}
    wish = replace(wishes.wish_of(fleet, regions), outgrown=int(fleet.known.get(OUTGROWN) or 0))
    if wish.machine:
        kind = prices.kind_of(fleet, table)
        table = replace(table, machines={**table.machines, kind.name: kind})
    disk = prices.disk_of(fleet, settings.sizes().disk_price)
    found = choice.choose(wish, table, quotas, disk)
    if not found.found:
        raise _nothing(fleet, wish, choice.nearest(wish, table, quotas, disk))
    return replace(found, found=_by_measured_cost(fleet, found.found))


def machines(fleet: Fleet) -> dict[str, Fleet]:
    """Each machine of a wish by a short name, the cheapest first: the same wish for this machine alone."""
    if not wishes.is_wish(fleet):
        return {}
    kept = {key: value for key, value in fleet.options.items() if key not in ("gpu", "cpus", "memory", "mix")}
    kept["zones"] = kept.get("zones") or (places.ANY,)
    fleets: dict[str, Fleet] = {}
    for candidate in _firsts(candidates(fleet).found).values():
        name, gpu = _short(fleet, candidate), {"gpu": (_gpu(candidate),)} if candidate.gpu else {}
        own = {**kept, **gpu, "machine": candidate.machine}
        fleets.setdefault(name, replace(fleet, name=f"{fleet.name}:{name}", options=own))
    return fleets


def _short(fleet: Fleet, one: Candidate) -> str:
    """Short name of a machine among those of its fleet: its GPU, where the wish says no more."""
    sized = any(fleet.options.get(key) is not None for key in ("cpus", "memory"))
    if one.gpu and not sized and fleet.options.get("machine") != places.ANY:
        return _gpu(one).removesuffix(":1")
    attached = one.gpu and not shapes.inside_of(one.machine)[1]
    return f"{one.machine}:{_gpu(one)}" if attached else one.machine


def _gpu(one: Candidate) -> str:
    return f"{one.gpu}:{one.gpus}"


def _by_measured_cost(fleet: Fleet, found: tuple[Candidate, ...]) -> tuple[Candidate, ...]:
    """Candidates that scouts measured come first, the cheapest for the same work before the others; by price
    where fewer than two machines can be compared."""
    costs = {one: cost for one in found if (cost := _measured_cost(fleet, one)) is not None}
    if len({_short(fleet, one) for one in costs}) < 2:
        return found
    return tuple(sorted(found, key=lambda one: (one not in costs, costs.get(one, one.price))))


def _measured_cost(fleet: Fleet, one: Candidate) -> float | None:
    """Money for the work that scouts measured; None where they did not."""
    paces: MachinePaces | None = fleet.known.get(PACES)
    seconds = paces.seconds.get(_short(fleet, one)) if paces else None
    hourly = one.price if fleet.price is None else fleet.price
    return None if seconds is None else hourly / 3600 * seconds


def _nothing(fleet: Fleet, wish: wishes.MachineWish, near: tuple[str, Candidate] | None) -> UsageError:
    keys = ("gpu", "cpus", "memory", "machine", "zones", "exclude_zones", "spot")
    lines = [f"{key}: {_shown(fleet.options[key])}" for key in keys if fleet.options.get(key) is not None]
    if wish.outgrown:
        lines.append(f"runs were out of memory on GPUs of {wish.outgrown / 1e9:.3g} GB")
    hint = "ask for less: `gpu`, `cpus`, `memory`, `zones`"
    if near:
        words, candidate = near
        hint = f"the nearest, with {words}: {candidate} at {show_money(candidate.price)} an hour"
    return UsageError(f"fleet {fleet.name}: no machine fits {'; '.join(lines)}", hint=hint)


def _shown(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def tried(fleet: Fleet) -> tuple[Candidate, ...]:
    """Candidates of a launch, in the order in which they are asked for."""
    found = candidates(fleet).found
    kept = {*found[:TRIES], *(_firsts(found).values() if fleet.options.get("mix") else ())}
    return tuple(candidate for candidate in found if candidate in kept)


def _firsts(found: Sequence[Candidate]) -> dict[tuple[str, str, int], Candidate]:
    """Each machine where it is cheapest."""
    kinds: dict[tuple[str, str, int], Candidate] = {}
    for candidate in found:
        kinds.setdefault((candidate.machine, candidate.gpu, candidate.gpus), candidate)
    return kinds


def shares(found: Sequence[Candidate], workers: int, *, mix: bool) -> list[int]:
    """Workers of each candidate that are asked for first: all of the cheapest; with `mix` about as many of
    each machine, each where it is cheapest. The others stand in. Pure."""
    first = list(_firsts(found).values()) if mix else [found[0]]
    share, more = divmod(workers, len(first))
    sizes = {candidate: share + (place < more) for place, candidate in enumerate(first)}
    return [sizes.get(one, 0) for one in found]


def narrowed(fleet: Fleet, one: Candidate | None = None) -> Fleet:
    """The fleet as if its file had named this candidate, or the cheapest. One without wishes as it is."""
    if not wishes.is_wish(fleet):
        return fleet
    one = one or tried(fleet)[0]
    kept = {key: value for key, value in fleet.options.items() if key not in ("gpu", "cpus", "memory", "mix")}
    gpu = {"gpu": f"{one.gpu}:{one.gpus}"} if one.gpu else {}
    place = {"machine": one.machine, "zones": one.zones, "exclude_zones": (), "spot": one.spot}
    return replace(fleet, options={**kept, **gpu, **place})


def price(fleet: Fleet, workers: int) -> FleetPrice:
    """A cap counts with the dearest candidate: a launch may come to it."""
    found = tried(fleet)
    table = prices.own_table()
    return FleetPrice(
        workers,
        max(candidate.price for candidate in found),
        f"Google's prices of {table.date}",
        spot=fleet.options.get("spot", True),
        days=prices.age(table.date),
        offers=tuple(
            PriceOffer(
                candidate.what,
                _where(candidate),
                candidate.spot,
                candidate.price,
                shapes.gpu_bytes(candidate.gpu),
            )
            for candidate in found
        ),
        mixed=bool(fleet.options.get("mix")),
        left_out=tuple(left_out(candidates(fleet))),
        measured=_measured(fleet, found),
    )


def at_price(fleet: Fleet, own: FleetPrice) -> FleetPrice:
    """The same candidates, all of them at the price that the fleet's file gives."""
    known = price(fleet, own.workers)
    each = own.worker or 0.0
    offers = tuple(replace(offer, price=each) for offer in known.offers)
    known = replace(known, offers=offers)
    told = ("spot", "offers", "mixed", "left_out", "measured")
    return replace(own, **{name: getattr(known, name) for name in told})


def _measured(fleet: Fleet, found: Sequence[Candidate]) -> str:
    """Line on what the same work costs on each machine where it is cheapest; '' where they go by price."""
    paces: MachinePaces | None = fleet.known.get(PACES)
    costs: Mapping[str, float | None] = {
        _short(fleet, candidate): _measured_cost(fleet, candidate) for candidate in reversed(found)
    }
    known = {name: cost for name, cost in costs.items() if cost is not None}
    if paces is None or len(known) < 2:
        return ""
    ordered = sorted(known.items(), key=lambda item: item[1])
    text = ", ".join(f"{name} {show_money(cost)}" for name, cost in ordered)
    return f"in the order of what {paces.work} costs there, as scouted: {text}"


def _where(one: Candidate) -> str:
    letters = "".join(zone.rpartition("-")[2] for zone in one.zones)
    return f"{one.region} ({letters})"


def left_out(found: Candidates) -> Iterator[str]:
    """Lines about the candidates left out, reason by reason: few by name, many by number."""
    more = len(found.found) - TRIES
    if more > 0:
        yield f"{counted(more, 'candidate')}: after the {TRIES} that are tried"
    ordered = sorted(found.left_out, key=lambda one: one.why)
    for why, some in groupby(ordered, key=lambda one: one.why):
        yield f"{_named(list(some))}: {why}"


def _named(some: Sequence[NotChosen]) -> str:
    names = list(dict.fromkeys(machine.what for machine in some))
    if len(names) <= NAMED:
        return ", ".join(names)
    machines = {one.machine for one in some if one.machine}
    if not machines:
        return counted(len(names), "place")
    return f"{machines.pop()} in {counted(len(names), 'place')}" if len(machines) == 1 else _types(machines)


def _types(machines: set[str]) -> str:
    return counted(len(machines), "machine type")


def warnings(fleet: Fleet) -> list[str]:
    """Machines of a mix that have no worker, and buckets that are far from where machines may come up, with
    the price of the way."""
    found = list(_without_worker(fleet)) if fleet.options.get("mix") else []
    regions = dict.fromkeys(candidate.region for candidate in tried(fleet))
    for bucket, location in (fleet.known.get(BUCKETS) or {}).items():
        ways: dict[str, list[str]] = {}
        for region in regions:
            if words := places.far(location, region):
                ways.setdefault(words, []).append(region)
        for words, some in ways.items():
            found.append(f"bucket {bucket} is in {location}, VMs in {_first_names(some)} would be {words}")
    return found


def _without_worker(fleet: Fleet) -> Iterator[str]:
    kinds = [candidate.what for candidate in _firsts(tried(fleet)).values()]
    if 0 < fleet.workers < len(kinds):
        rest = _first_names(kinds[fleet.workers :])
        workers = counted(fleet.workers, "worker")
        yield f"`mix` has {len(kinds)} machines for {workers}: {rest} only where others are out"


def _first_names(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
