"""Before a fleet starts: its money is reserved, and becomes one deadline of this launch.

A cap is a deadline: now, and as long as the money lasts at full size, less a margin for machines that end
late. Reserved is first, then the launch's number is taken with all that was agreed; a death anywhere in
between leaves a reservation that the next one who looks gives back. Times are the store's.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from typing import NoReturn

from hostler.errors import UsageError
from hostler.money.tariff import Asked, Funded, counts
from hostler.records.launch import launches, ledger, settlement
from hostler.records.launch.launches import Generation
from hostler.records.launch.ledger import Account, Reservation
from hostler.records.run import heartbeats
from hostler.records.sweep import deadline
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.spec.names import slug
from hostler.spec.units import show_duration
from hostler.store import Store

BOOT = 60.0  # seconds: a machine that has less is gone before it works
ROOM = 1.25  # times the margin: what a reservation must last at least, to be of use


def until(now: float, money: float | None, hourly: float, hours: float | None, margin: float) -> float | None:
    """The deadline of a launch; None if nothing bounds it. Pure."""
    by_money = now + money / hourly * 3600 - margin if money is not None and hourly else None
    by_time = now + hours * 3600 if hours is not None else None
    return min((time for time in (by_money, by_time) if time is not None), default=None)


def fund(store: Store, asked: Asked, timing: Timing) -> Funded:
    """Agree on a launch: reserve, take its number; UsageError if its money is not there."""
    if not counts(asked):
        return Funded()
    _check_price(asked)
    _check_time(asked, _hours(asked, store))
    settle(store, asked, timing)
    while True:
        generation = _drawn_up(store, asked, heartbeats.store_time(store))
        held = _reserve(store, asked, generation, timing) if generation.hourly else {}
        generation = _agreed(generation, asked, held, store, timing)
        if launches.begin(store, generation):
            return Funded(generation.name, generation.deadline, generation.began, generation.reserved)
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
    _check_price(asked)
    _check_time(asked, _hours(asked, store))
    generation = _drawn_up(store, asked, time.time() if now is None else now)
    most, held = _most(asked, generation, store, timing), dict[str, Reservation]()
    for sweep, budget in asked.budgets.items() if generation.hourly else ():
        remaining = ledger.read(store, sweep).left(budget)
        part = remaining if most is None else min(remaining, most / len(asked.budgets))
        if part <= 0 or part < _least(store, asked, generation, timing):
            _refuse(ledger.read(store, sweep), asked, sweep, budget, generation, timing)
        held[sweep] = Reservation(0, generation.fleet, generation.number, "", part)
    generation = _agreed(generation, asked, held, store, timing)
    return Funded(generation.name, generation.deadline, generation.began, generation.reserved)


def cancel(store: Store, funded: Funded, timing: Timing, watched: float | None = None) -> None:
    """It could not be started: whatever of it begins nevertheless leaves, and the money goes back. `watched`:
    for how many seconds its machines were there, where that is known."""
    place = launches.named(funded.name)
    generation = launches.read(store, *place) if place else None
    if generation is not None:
        settlement.close(store, generation, timing, watched)


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
        gpu_memory=max((offer.gpu_memory for offer in asked.price.offers), default=0),
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
    """The part reserved of every budget: the money of a fleet with its own cap is shared out evenly."""
    most, held = _most(asked, one, store, timing), dict[str, Reservation]()
    for n, (sweep, budget) in enumerate(asked.budgets.items()):
        remaining = len(asked.budgets) - n
        part = None if most is None else (most - sum(each.cost for each in held.values())) / remaining
        reservation = ledger.reserve(
            store,
            sweep,
            budget,
            fleet=one.fleet,
            generation=one.number,
            launch=one.launch,
            most=part,
            least=_least(store, asked, one, timing),
        )
        if reservation is None:
            _give_back(store, held)
            _refuse(ledger.read(store, sweep), asked, sweep, budget, one, timing)
        held[sweep] = reservation
    return held


def _least(store: Store, asked: Asked, one: Generation, timing: Timing) -> float:
    """The least to take of each budget: less would be spent before it is of use, unless less is asked."""
    by_time = _by_time(asked, one, store, timing)
    useful = _useful(one, timing)
    return (useful if by_time is None else min(useful, by_time)) / len(asked.budgets)


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
    for sweep, reservation in held.items():
        ledger.give_back(store, sweep, reservation.n, reservation.cost)


# Why a launch has no money, in words, and what to do about it.


def _useful(one: Generation, timing: Timing) -> float:
    """Less money than this is over before it is of use."""
    return one.hourly * ROOM * timing.cap_margin / 3600


def _check_price(asked: Asked) -> None:
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
        f"{what} cannot be enforced: the price of {asked.fleet.name} is not known",
        hint="add a worker's hourly `price:` to the fleet (0 if it costs nothing), or leave the cap out",
    )


def _check_time(asked: Asked, hours: float | None) -> None:
    """Machines that would be taken away before they work are not asked for."""
    if not asked.billed or hours is None or hours * 3600 >= BOOT:
        return
    capped = [job.name for job in asked.jobs if job.budget.hours is not None]
    raise UsageError(
        f"{asked.fleet.name} would be gone after {show_duration(hours * 3600)}, before its machines start",
        hint="raise `deadline` or `max_hours` of the fleet"
        + (f", or more `budget: {{hours: N}}` in the file of {', '.join(capped)}" if capped else ""),
    )


def _refuse(
    account: Account, asked: Asked, sweep: str, budget: float, one: Generation, timing: Timing
) -> NoReturn:
    """Nothing of a sweep's budget is left, or too little."""
    remaining = account.left(budget)
    whose = account.open[0].fleet if account.open else ""
    held = ", ".join(f"{each.kept:g} by {each.fleet}/{each.generation}" for each in account.open)
    if remaining > 0:
        _check_enough(asked, min([remaining, *filter(None, [asked.fleet.max_cost])]), one, timing, of=sweep)
    raise UsageError(
        f"the budget of {sweep} is used up: {remaining:g} of {budget:g} left"
        + (f" (reserved: {held})" if held else ""),
        hint="allow more (`budget: {cost: N}` in its file, and submit that)"
        + (f", or wait until {whose} has ended (hostler down {whose} ends it)" if held else "")
        + f"; hostler cost {sweep} shows it",
    )


def _check_enough(asked: Asked, money: float, one: Generation, timing: Timing, of: str = "") -> None:
    if money >= _useful(one, timing):
        return
    whose = f"what is left of the budget of {of}, {money:g}," if of else f"max_cost {money:g}"
    raise UsageError(
        f"{whose} is less than {show_duration(ROOM * timing.cap_margin)} of {asked.fleet.name}, "
        f"which costs {one.hourly:g} an hour",
        hint=f"fewer `workers`, or more money: {show_duration(timing.cap_margin)} of it are a reserve "
        "for machines that end late",
    )
