"""Before a fleet starts: its money is reserved, and becomes one deadline of this launch.

A cap is a deadline: now, and as long as the money lasts at full size, less a margin for machines that end
late. Reserved is first, then the launch's number is taken with all that was agreed; a death anywhere in
between leaves a reservation that the next one who looks gives back. Times are the store's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from hostler.errors import UsageError
from hostler.fleet.prices import FleetPrice
from hostler.records import deadline, generations, heartbeats, ledger, settling
from hostler.records.generations import Generation
from hostler.records.ledger import Reservation
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.spec.names import slug
from hostler.spec.project import Fleet
from hostler.spec.units import show_duration
from hostler.store import Store

ROOM = 1.25  # times the margin: what a reservation must last at least, to be of use


@dataclass(frozen=True)
class Asked:
    """A launch, before it is agreed to."""

    fleet: Fleet
    price: FleetPrice
    jobs: Sequence[Job]
    own: bool = False  # on this very machine
    queued: bool = False  # its workers may wait for long before they start
    billed: bool = False

    @property
    def budgets(self) -> dict[str, float]:
        """sweep → what it may cost in all."""
        return {job.name: job.budget.cost for job in self.jobs if job.budget.cost is not None}


@dataclass(frozen=True)
class Funded:
    """What was agreed: `name` is fleet/number, '' where nobody counts."""

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
    check_price(asked)
    settle(store, asked, timing)
    while True:
        one = _drawn_up(store, asked)
        held = _reserve(store, asked, one, timing) if one.hourly else {}
        one = _agreed(one, asked, held, store, timing)
        if generations.begin(store, one):
            return Funded(one.name, one.deadline, one.began, one.reserved)
        _give_back(store, held)  # another launch was faster: its number is not ours


def settle(store: Store, asked: Asked, timing: Timing) -> None:
    """What ended launches have not spent of these sweeps' money goes back; what others spent is counted."""
    for sweep in asked.budgets:
        settling.settle_sweep(store, sweep, timing)
        settling.charge_unreserved(store, sweep, timing)


def foresee(store: Store, asked: Asked, timing: Timing) -> Funded:
    """What `fund` would agree on now, or its refusal; nothing is reserved."""
    if not counts(asked):
        return Funded()
    check_price(asked)
    one = _drawn_up(store, asked)
    most, held = _most(asked, one, store, timing), dict[str, Reservation]()
    for sweep, budget in asked.budgets.items() if one.hourly else ():
        left = ledger.read(store, sweep).left(budget)
        part = left if most is None else min(left, most / len(asked.budgets))
        if part <= 0 or part < _least(asked, one, timing):
            _refuse(store, asked, sweep, budget, one, timing)
        held[sweep] = Reservation(0, one.fleet, one.number, "", part)
    one = _agreed(one, asked, held, store, timing)
    return Funded(one.name, one.deadline, one.began, one.reserved)


def cancel(store: Store, funded: Funded, timing: Timing) -> None:
    """It could not be started: whatever of it begins nevertheless leaves, and the money goes back."""
    place = generations.named(funded.name)
    one = generations.read(store, *place) if place else None
    if one is not None:
        settling.close(store, one, timing)


def check_price(asked: Asked) -> None:
    """A cap in money needs a price; without one it is not kept, and that is said before anything starts."""
    if asked.price.worker is not None or (asked.own and asked.fleet.max_cost is None):
        return
    if asked.fleet.max_cost is not None:
        what = f"`max_cost` of fleet {asked.fleet.name}"
    elif asked.budgets:
        what = f"`budget: {{cost}}` of {', '.join(asked.budgets)}"
    else:
        return
    raise UsageError(
        f"{what} cannot be kept: nobody knows what {asked.fleet.name} costs",
        hint="`price:` of one worker for an hour in the fleet (0 if it costs nothing), or leave the cap out",
    )


def _drawn_up(store: Store, asked: Asked) -> Generation:
    fleet = slug(asked.fleet.name)
    return Generation(
        fleet,
        generations.next_number(store, fleet),
        launch=generations.new_launch(),
        workers=asked.price.workers,
        price=asked.price.worker,
        began=heartbeats.store_time(store),
        sweeps=tuple(job.name for job in asked.jobs),
        counted=not asked.queued and not asked.billed,
        billed=asked.billed,
    )


def _agreed(
    one: Generation, asked: Asked, held: Mapping[str, Reservation], store: Store, timing: Timing
) -> Generation:
    reserved = {sweep: each.cost for sweep, each in held.items()}
    money = sum(reserved.values()) if reserved else asked.fleet.max_cost
    hours = _hours(asked, store)
    end = until(one.began, money, one.hourly, hours, timing.cap_margin)
    if money is not None and one.hourly and not reserved:
        _check_enough(asked, money, one, timing)
    return replace(one, deadline=end, reserved=reserved)


def _reserve(store: Store, asked: Asked, one: Generation, timing: Timing) -> dict[str, Reservation]:
    """Of every budget its part: the money of a fleet with a cap of its own is shared out evenly."""
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
            least=_least(asked, one, timing),
        )
        if found is None:
            _give_back(store, held)
            _refuse(store, asked, sweep, budget, one, timing)
        held[sweep] = found
    return held


def _least(asked: Asked, one: Generation, timing: Timing) -> float:
    """Of each budget: less would be over before it is of use."""
    return one.hourly * ROOM * timing.cap_margin / 3600 / len(asked.budgets)


def _most(asked: Asked, one: Generation, store: Store, timing: Timing) -> float | None:
    """What it can spend by its own caps."""
    hours = _hours(asked, store)
    by_time = one.hourly * (hours + timing.cap_margin / 3600) if hours is not None else None
    return min((cost for cost in (asked.fleet.max_cost, by_time) if cost is not None), default=None)


def _hours(asked: Asked, store: Store) -> float | None:
    own = [asked.fleet.max_hours] if asked.fleet.max_hours is not None else []
    given = asked.fleet.options.get("deadline")
    own += [given / 3600] if given else []
    theirs = [_hours_left(store, job, queued=asked.queued) for job in asked.jobs]
    known = [hours for hours in theirs if hours is not None]
    own += [max(known)] if known and len(known) == len(theirs) else []
    return min(own, default=None)


def _hours_left(store: Store, job: Job, *, queued: bool) -> float | None:
    """Of a sweep's own hours; they count from its first start, which a queue may put off."""
    if job.budget.hours is None:
        return None
    gone = deadline.spent(store, job.name)
    if gone is None and queued:
        return None
    return max(0.0, job.budget.hours - (gone or 0.0))


def _refuse(
    store: Store, asked: Asked, sweep: str, budget: float, one: Generation, timing: Timing
) -> NoReturn:
    account = ledger.read(store, sweep)
    left = account.left(budget)
    held = ", ".join(f"{each.kept:g} by {each.fleet}/{each.generation}" for each in account.open)
    if left > 0:
        _check_enough(asked, min([left, *filter(None, [asked.fleet.max_cost])]), one, timing, of=sweep)
    raise UsageError(
        f"the budget of {sweep} is used up: of {budget:g} there is {left:g} left"
        + (f" (reserved: {held})" if held else ""),
        hint="allow more (`budget: {cost: N}` in its file, and submit that)"
        + (f", or wait until {account.open[0].fleet} has ended" if held else "")
        + f"; hostler cost {sweep} shows it",
    )


def _check_enough(asked: Asked, money: float, one: Generation, timing: Timing, of: str = "") -> None:
    if money >= one.hourly * ROOM * timing.cap_margin / 3600:
        return
    whose = f"what is left of the budget of {of}, {money:g}," if of else f"max_cost {money:g}"
    raise UsageError(
        f"{whose} is less than {show_duration(ROOM * timing.cap_margin)} of {asked.fleet.name}, "
        f"which costs {one.hourly:g} an hour",
        hint=f"fewer `workers`, or more money: {show_duration(timing.cap_margin)} of it are kept back, "
        "for machines that end late",
    )


def _give_back(store: Store, held: Mapping[str, Reservation]) -> None:
    for sweep, one in held.items():
        ledger.give_back(store, sweep, one.n, one.cost)
