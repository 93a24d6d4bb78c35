"""The machines that a fleet with wishes gets: its candidates by this machine's table, their price, the words.

Everybody who asks gets the same candidates: `plan`, the price, the launch. Of a fleet without wishes nothing
is asked here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from hostler import settings
from hostler.backends.gce import prices
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
    wish = wishes.wish_of(fleet, regions)
    if wish.machine:
        kind = prices.kind_of(fleet, table)
        table = replace(table, machines={**table.machines, kind.name: kind})
    disk = prices.disk_of(fleet, settings.sizes().disk_price)
    found = choice.choose(wish, table, quotas, disk)
    if not found.found:
        raise _nothing(fleet, wish, choice.nearest(wish, table, quotas, disk))
    return found


def _nothing(fleet: Fleet, wish: wishes.MachineWish, near: tuple[str, Candidate] | None) -> UsageError:
    keys = ("gpu", "cpus", "memory", "machine", "zones", "exclude_zones", "spot")
    said = [f"{key}: {_shown(fleet.options[key])}" for key in keys if fleet.options.get(key) is not None]
    hint = "ask for less: `gpu`, `cpus`, `memory`, `zones`"
    if near:
        words, one = near
        hint = f"the nearest, with {words}: {one} at {show_money(one.price)} an hour"
    return UsageError(f"fleet {fleet.name}: no machine fits {'; '.join(said)}", hint=hint)


def _shown(value: object) -> str:
    if isinstance(value, (tuple, list)):
        return f"[{', '.join(map(str, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def tried(fleet: Fleet) -> tuple[Candidate, ...]:
    """Candidates of a launch, in the order in which they are asked for."""
    found = candidates(fleet).found
    kept = {*found[:TRIES], *(_firsts(found).values() if fleet.options.get("mix") else ())}
    return tuple(one for one in found if one in kept)


def _firsts(found: Sequence[Candidate]) -> dict[tuple[str, str, int], Candidate]:
    """Each machine where it is cheapest."""
    kinds: dict[tuple[str, str, int], Candidate] = {}
    for one in found:
        kinds.setdefault((one.machine, one.gpu, one.gpus), one)
    return kinds


def shares(found: Sequence[Candidate], workers: int, *, mix: bool) -> list[int]:
    """Workers of each candidate that are asked for first: all of the cheapest; with `mix` about as many of
    each machine, each where it is cheapest. The others stand in. Pure."""
    first = list(_firsts(found).values()) if mix else [found[0]]
    share, more = divmod(workers, len(first))
    sizes = {one: share + (place < more) for place, one in enumerate(first)}
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
        max(one.price for one in found),
        f"Google's prices of {table.date}",
        spot=fleet.options.get("spot", True),
        days=prices.age(table.date),
        offers=tuple(PriceOffer(one.what, _where(one), one.spot, one.price) for one in found),
        left_out=tuple(left_out(candidates(fleet))),
    )


def _where(one: Candidate) -> str:
    letters = "".join(zone.rpartition("-")[2] for zone in one.zones)
    return f"{one.region} ({letters})"


def left_out(found: Candidates) -> Iterator[str]:
    """Lines about the candidates left out, reason by reason: few by name, many by number."""
    more = len(found.found) - TRIES
    if more > 0:
        yield f"{counted(more, 'candidate')}: more expensive than the {TRIES} that are tried"
    ordered = sorted(found.left_out, key=lambda one: one.why)
    for why, some in groupby(ordered, key=lambda one: one.why):
        yield f"{_named(list(some))}: {why}"


def _named(some: Sequence[NotChosen]) -> str:
    names = list(dict.fromkeys(one.what for one in some))
    if len(names) <= NAMED:
        return ", ".join(names)
    machines = {one.machine for one in some if one.machine}
    if not machines:
        return counted(len(names), "place")
    return f"{machines.pop()} in {counted(len(names), 'place')}" if len(machines) == 1 else _types(machines)


def _types(machines: set[str]) -> str:
    return counted(len(machines), "machine type")


def warnings(fleet: Fleet) -> list[str]:
    """Buckets that are far from where machines may come up, with the price of the way."""
    regions = dict.fromkeys(one.region for one in tried(fleet))
    found = []
    for bucket, location in (fleet.known.get(BUCKETS) or {}).items():
        ways: dict[str, list[str]] = {}
        for region in regions:
            if words := places.far(location, region):
                ways.setdefault(words, []).append(region)
        for words, some in ways.items():
            named = ", ".join(some[:NAMED]) + (f" and {len(some) - NAMED} more" if len(some) > NAMED else "")
            found.append(f"bucket {bucket} is in {location}, VMs in {named} would be {words}")
    return found
