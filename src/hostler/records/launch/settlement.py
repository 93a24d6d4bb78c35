"""Settlement of launches: the cost of each, and the rest it returns to the sweeps it reserved from.

Returned is only what is left when a launch is over, its machines gone for certain. Workers of machines that
nobody bills count by their own notes, one that fell silent to a note more; billed machines count all of
them, from the launch to the last moment they may have been there. Anybody may do any step, and again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field, replace

from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.launch import closing, launches, ledger, serving
from hostler.records.launch.launches import Generation, Stay
from hostler.records.launch.ledger import Reservation
from hostler.records.run import heartbeats
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.store import Store

SILENT = 3.0  # notes that did not come: the worker is dead


@dataclass(frozen=True)
class Spend:
    """Cost of a launch's workers so far, and whether it is over."""

    generation: Generation
    cost: float
    hours: float  # of workers
    over: bool
    used: float = 0.0  # of the cost, by runs; the rest is idle, or attempts that were lost
    working: int = 0  # workers that are there
    joined: Mapping[str, float] = field(default_factory=dict)  # sweep → since when it is served

    def of(self, sweep: str) -> float:
        """The part of one of the sweeps it serves."""
        return self.cost * share(self.generation, sweep)

    def since(self, sweep: str) -> float:
        """From when on it may have cost this sweep something."""
        return max(self.generation.began, self.joined.get(sweep, 0.0))


def share(one: Generation, sweep: str) -> float:
    """Share of a launch that a sweep pays: as it reserved; without reservations, an equal part."""
    total = sum(one.reserved.values())
    if total:
        return one.reserved.get(sweep, 0.0) / total
    return 1 / len(one.sweeps) if sweep in one.sweeps else 0.0


def is_there(stay: Stay, now: float, timing: Timing) -> bool:
    return not stay.over and now - stay.modified <= SILENT * timing.account


def seconds(found: Sequence[Stay], now: float, timing: Timing) -> float:
    """Seconds of all workers together. Pure. A silent one counts to its last note and one note more. Those
    that were on one machine, one after the other, count as that machine, from when it was made."""
    total, machines = 0.0, dict[str, float]()
    for stay in found:
        more = 0.0 if stay.over else now - stay.modified if is_there(stay, now, timing) else timing.account
        if stay.machine:
            machines[stay.machine] = max(machines.get(stay.machine, 0.0), stay.age + max(0.0, more))
        else:
            total += stay.seconds + max(0.0, more)
    return total + sum(machines.values())


def noted(one: Generation, found: Sequence[Stay], now: float, timing: Timing) -> float:
    """Cost of a launch by the notes of its workers, each at its own price, or else the launch's. Pure."""
    by_price: dict[float, list[Stay]] = {}
    for stay in found:
        by_price.setdefault(one.price or 0.0 if stay.price is None else stay.price, []).append(stay)
    return sum(price * seconds(some, now, timing) / 3600 for price, some in by_price.items())


def is_over(one: Generation, found: Sequence[Stay], gone: float | None, now: float, timing: Timing) -> bool:
    """Whether all its machines are gone for certain. Pure."""
    if any(is_there(stay, now, timing) for stay in found):
        return False
    if gone is not None or (one.deadline is not None and now >= one.deadline + timing.cap_margin):
        return True
    return one.counted and sum(stay.final for stay in found) >= one.workers


def spent(
    one: Generation,
    found: Sequence[Stay],
    gone: float | None,
    now: float,
    timing: Timing,
    watched: float | None = None,
) -> float:
    """Highest cost of a launch. Pure. Billed machines count at full size, from first to last; but by the
    second where somebody `watched` all of them come and go."""
    if one.price is None:
        return 0.0
    if watched is not None:
        return one.price * watched / 3600
    if not one.billed:
        return one.price * seconds(found, now, timing) / 3600
    end = min([now, *(time for time in (gone, one.deadline) if time is not None)]) + timing.cap_margin
    return one.hourly * max(0.0, end - one.began) / 3600


def look(store: Store, one: Generation, now: float, timing: Timing) -> Spend:
    """For people: what workers note of themselves and of their machines, billed or not."""
    joined = closing.joined(store, one.fleet, one.number) if one.billed else {}
    one = replace(one, sweeps=tuple(dict.fromkeys((*one.sweeps, *joined))))
    found, gone = _seen(store, one)
    watched = launches.watched(store, one.fleet, one.number) if gone is not None else None
    lasted = seconds(found, now, timing)
    hours = max(lasted, watched or 0.0) / 3600
    cost = noted(one, found, now, timing) + (one.price or 0.0) * (hours - lasted / 3600)
    over = is_over(one, found, gone, now, timing)
    working = sum(is_there(stay, now, timing) for stay in found)
    used = sum(stay.used for stay in found)
    return Spend(one, cost, hours, over, used, working, joined)


def close_silent(store: Store, fleet: str, timing: Timing) -> None:
    """The engine lists no worker of this fleet: launches that nobody is seen of are over. One that was made
    a moment ago may be about to start."""
    of_fleet = launches.of_fleet(store, fleet)
    now = heartbeats.store_time(store) if of_fleet else 0.0
    for generation in of_fleet:
        found = launches.stays(store, generation.fleet, generation.number)
        young = now - generation.began < max(serving.lease_of(store), SILENT * timing.account)
        if not young and not any(is_there(stay, now, timing) for stay in found):
            launches.close(store, generation.fleet, generation.number)


def settle_sweep(store: Store, sweep: str, timing: Timing) -> None:
    """Return what ended launches have not spent of this sweep's money."""
    account = ledger.read(store, sweep)
    if account.open:
        now = heartbeats.store_time(store)
        for reservation in account.open:
            _settle(store, sweep, reservation, now, timing)


def leave(store: Store, fleet: str, number: int, timing: Timing) -> None:
    """After a worker has noted its end: the last one of a launch closes it."""
    generation = launches.read(store, fleet, number)
    if generation is None:
        return
    found = launches.stays(store, fleet, number)
    if is_over(generation, found, None, heartbeats.store_time(store), timing):
        close(store, generation, timing)


def close(store: Store, one: Generation, timing: Timing, watched: float | None = None) -> None:
    """Its machines are gone: what was not spent goes back."""
    launches.close(store, one.fleet, one.number, watched)
    for sweep in one.reserved:
        settle_sweep(store, sweep, timing)


def charge_unreserved(store: Store, sweep: str, timing: Timing) -> None:
    """Charge ended launches without a reservation to a budget that came later."""
    known = {(fleet, number) for fleet, number, _ in ledger.read(store, sweep).charged}
    first = sweeps.since(store, sweep)  # launches before it were for another sweep of this name
    free = [
        generation
        for generation in launches.everywhere(store)
        if generation.price and not generation.reserved
    ]
    new = [generation for generation in free if (generation.fleet, generation.number) not in known]
    now = heartbeats.store_time(store) if new else 0.0
    for spend in (look(store, generation, now, timing) for generation in new):
        one = spend.generation
        if spend.over and sweep in one.sweeps and spend.since(sweep) >= first:
            watched = launches.watched(store, one.fleet, one.number)
            cost = share(one, sweep) * spent(one, *_seen(store, one), now, timing, watched)
            ledger.charge(store, sweep, fleet=one.fleet, generation=one.number, cost=cost)


def _seen(store: Store, one: Generation) -> tuple[Sequence[Stay], float | None]:
    """Stays of a launch's workers, and the time since when all are gone."""
    return launches.stays(store, one.fleet, one.number), launches.gone_at(store, one.fleet, one.number)


def _settle(store: Store, sweep: str, held: Reservation, now: float, timing: Timing) -> None:
    generation = launches.read(store, held.fleet, held.generation)
    if generation is None:
        if now - _made(store, sweep, held, now) < serving.lease_of(store):
            return  # it is being launched
        launches.void(store, held.fleet, held.generation)
        generation = launches.read(store, held.fleet, held.generation)
    if generation is None or generation.launch != held.launch:  # nothing was started on it
        ledger.give_back(store, sweep, held.n, held.cost)
        return
    found, gone = _seen(store, generation)
    if not is_over(generation, found, gone, now, timing):
        return
    if gone is None:
        launches.close(store, generation.fleet, generation.number)  # before the last look at who has begun
        found = launches.stays(store, generation.fleet, generation.number)
        if any(is_there(stay, now, timing) for stay in found):
            return
    watched = launches.watched(store, generation.fleet, generation.number)
    cost = share(generation, sweep) * spent(generation, found, gone, now, timing, watched)
    ledger.give_back(store, sweep, held.n, held.cost - cost)


def _made(store: Store, sweep: str, held: Reservation, now: float) -> float:
    key = layout.ledger_entry(sweep, held.n)
    return next((entry.modified for entry in store.list(key)), now)
