"""Before a fleet starts: its money is reserved, and becomes one deadline of this launch.

A cap is a deadline: now, and as long as the money lasts at full size, less a margin for machines that end
late. Reserved is first, then the launch's number is taken with all that was agreed; a death anywhere in
between leaves a reservation that the next one who looks gives back. Times are the store's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from hostler.backends.prices import FleetPrice
from hostler.money import shortage
from hostler.records.launch import launches, ledger, settlement
from hostler.records.launch.launches import Generation
from hostler.records.launch.ledger import Reservation
from hostler.records.run import heartbeats
from hostler.records.sweep import deadline
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.spec.names import slug
from hostler.spec.project import Fleet
from hostler.store import Store


@dataclass(frozen=True)
class Asked:
    """A launch, before it is agreed to."""

    fleet: Fleet
    price: FleetPrice
    jobs: Sequence[Job]
    own: bool = False  # on this very machine
    queued: bool = False  # its workers may wait for long before they start
    billed: bool = False
    by_hand: bool = False  # one machine for a person
    lasts: float | None = None  # hours that it is there, where nobody says otherwise
    longest: float | None = None  # hours that it can be there, whatever is said

    @property
    def budgets(self) -> dict[str, float]:
        """sweep → what it may cost in all."""
        return {job.name: job.budget.cost for job in self.jobs if job.budget.cost is not None}


@dataclass(frozen=True)
class Funded:
    """The agreed money of a launch: `name` is fleet/number, '' where none is counted."""

    name: str = ""
    deadline: float | None = None
    at: float = 0.0
    reserved: Mapping[str, float] = field(default_factory=dict)

    @property
    def seconds(self) -> float | None:
        return None if self.deadline is None else self.deadline - self.at


def counts(asked: Asked) -> bool:
    """Whether there is anything to agree on: a price, a cap, or a budget that might have to be kept."""
    fleet = asked.fleet
    if not asked.price.workers:
        return False
    capped = fleet.max_cost is not None or fleet.max_hours is not None or fleet.options.get("deadline")
    return bool(capped or asked.price.worker or asked.billed or (asked.budgets and not asked.own))


def until(now: float, money: float | None, hourly: float, hours: float | None, margin: float) -> float | None:
    """The deadline of a launch; None if nothing bounds it. Pure."""
    by_money = now + money / hourly * 3600 - margin if money is not None and hourly else None
    by_time = now + hours * 3600 if hours is not None else None
    return min((time for time in (by_money, by_time) if time is not None), default=None)


def fund(store: Store, asked: Asked, timing: Timing) -> Funded:
    """Agree on a launch: reserve, take its number; UsageError if its money is not there."""
    if not counts(asked):
        return Funded()
    shortage.check_price(asked)
    shortage.check_time(asked, _hours(asked, store))
    settle(store, asked, timing)
    while True:
        one = _drawn_up(store, asked, heartbeats.store_time(store))
        held = _reserve(store, asked, one, timing) if one.hourly else {}
        one = _agreed(one, asked, held, store, timing)
        if launches.begin(store, one):
            return Funded(one.name, one.deadline, one.began, one.reserved)
        _give_back(store, held)  # another launch was faster: its number is not ours


def settle(store: Store, asked: Asked, timing: Timing) -> None:
    """Return what ended launches have not spent of these sweeps' money; count what others spent."""
    for sweep in asked.budgets:
        settlement.settle_sweep(store, sweep, timing)
        settlement.charge_unreserved(store, sweep, timing)


def foresee(store: Store, asked: Asked, timing: Timing, now: float | None = None) -> Funded:
    """The agreement `fund` would make, or its refusal; nothing is written, so `now` is our own clock's."""
    if not counts(asked):
        return Funded()
    shortage.check_price(asked)
    shortage.check_time(asked, _hours(asked, store))
    one = _drawn_up(store, asked, time.time() if now is None else now)
    most, held = _most(asked, one, store, timing), dict[str, Reservation]()
    for sweep, budget in asked.budgets.items() if one.hourly else ():
        left = ledger.read(store, sweep).left(budget)
        part = left if most is None else min(left, most / len(asked.budgets))
        if part <= 0 or part < _least(store, asked, one, timing):
            shortage.refuse(ledger.read(store, sweep), asked, sweep, budget, one, timing)
        held[sweep] = Reservation(0, one.fleet, one.number, "", part)
    one = _agreed(one, asked, held, store, timing)
    return Funded(one.name, one.deadline, one.began, one.reserved)


def cancel(store: Store, funded: Funded, timing: Timing, watched: float | None = None) -> None:
    """It could not be started: whatever of it begins nevertheless leaves, and the money goes back. `watched`:
    for how many seconds its machines were there, where that is known."""
    place = launches.named(funded.name)
    one = launches.read(store, *place) if place else None
    if one is not None:
        settlement.close(store, one, timing, watched)


def _drawn_up(store: Store, asked: Asked, now: float) -> Generation:
    fleet = slug(asked.fleet.name)
    return Generation(
        fleet,
        launches.next_number(store, fleet),
        launch=launches.new_launch(),
        workers=asked.price.workers,
        price=asked.price.worker,
        began=now,
        sweeps=tuple(job.name for job in asked.jobs),
        counted=not asked.queued and not asked.billed,
        billed=asked.billed,
        by_hand=asked.by_hand,
    )


def _agreed(
    one: Generation, asked: Asked, held: Mapping[str, Reservation], store: Store, timing: Timing
) -> Generation:
    reserved = {sweep: each.cost for sweep, each in held.items()}
    money = sum(reserved.values()) if reserved else asked.fleet.max_cost
    hours = _hours(asked, store)
    end = until(one.began, money, one.hourly, hours, timing.cap_margin)
    if money is not None and one.hourly and not reserved:
        shortage.check_enough(asked, money, one, timing)
    return replace(one, deadline=end, reserved=reserved)


def _reserve(store: Store, asked: Asked, one: Generation, timing: Timing) -> dict[str, Reservation]:
    """The part reserved of every budget: the money of a fleet with its own cap is shared out evenly."""
    most, held = _most(asked, one, store, timing), dict[str, Reservation]()
    for n, (sweep, budget) in enumerate(asked.budgets.items()):
        left = len(asked.budgets) - n
        part = None if most is None else (most - sum(each.cost for each in held.values())) / left
        found = ledger.reserve(
            store,
            sweep,
            budget,
            fleet=one.fleet,
            generation=one.number,
            launch=one.launch,
            most=part,
            least=_least(store, asked, one, timing),
        )
        if found is None:
            _give_back(store, held)
            shortage.refuse(ledger.read(store, sweep), asked, sweep, budget, one, timing)
        held[sweep] = found
    return held


def _least(store: Store, asked: Asked, one: Generation, timing: Timing) -> float:
    """The least to take of each budget: less would be spent before it is of use, unless less is asked."""
    by_time = _by_time(asked, one, store, timing)
    least = shortage.least(one, timing)
    return (least if by_time is None else min(least, by_time)) / len(asked.budgets)


def _most(asked: Asked, one: Generation, store: Store, timing: Timing) -> float | None:
    """The most it can spend by its own caps."""
    by_time = _by_time(asked, one, store, timing)
    return min((cost for cost in (asked.fleet.max_cost, by_time) if cost is not None), default=None)


def _by_time(asked: Asked, one: Generation, store: Store, timing: Timing) -> float | None:
    hours = _hours(asked, store)
    return one.hourly * (hours + timing.cap_margin / 3600) if hours is not None else None


def _hours(asked: Asked, store: Store) -> float | None:
    own = [asked.fleet.max_hours] if asked.fleet.max_hours is not None else []
    given = asked.fleet.options.get("deadline")
    own += [given / 3600] if given else []
    theirs = [_hours_left(store, job, queued=asked.queued) for job in asked.jobs]
    known = [hours for hours in theirs if hours is not None]
    own += [max(known)] if known and len(known) == len(theirs) else []
    own = own or [hours for hours in (asked.lasts,) if hours is not None]
    own += [asked.longest] if asked.longest is not None else []
    return min(own, default=None)


def _hours_left(store: Store, job: Job, *, queued: bool) -> float | None:
    """Hours left of a sweep's own; they count from its first start, which a queue may put off."""
    if job.budget.hours is None:
        return None
    gone = deadline.spent(store, job.name)
    if gone is None and queued:
        return None
    return max(0.0, job.budget.hours - (gone or 0.0))


def _give_back(store: Store, held: Mapping[str, Reservation]) -> None:
    for sweep, one in held.items():
        ledger.give_back(store, sweep, one.n, one.cost)
