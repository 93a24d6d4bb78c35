"""Why a launch has no money, in words, and what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from hostler.errors import UsageError
from hostler.records.launch.launches import Generation
from hostler.records.launch.ledger import Account
from hostler.settings import Timing
from hostler.spec.units import show_duration

if TYPE_CHECKING:
    from hostler.money.funding import Asked

BOOT = 60.0  # seconds: a machine that has less is gone before it works
ROOM = 1.25  # times the margin: what a reservation must last at least, to be of use


def least(one: Generation, timing: Timing) -> float:
    """Less money than this is over before it is of use."""
    return one.hourly * ROOM * timing.cap_margin / 3600


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
        f"{what} cannot be enforced: the price of {asked.fleet.name} is not known",
        hint="add a worker's hourly `price:` to the fleet (0 if it costs nothing), or leave the cap out",
    )


def check_time(asked: Asked, hours: float | None) -> None:
    """Machines that would be taken away before they work are not asked for."""
    if not asked.billed or hours is None or hours * 3600 >= BOOT:
        return
    capped = [job.name for job in asked.jobs if job.budget.hours is not None]
    raise UsageError(
        f"{asked.fleet.name} would be gone after {show_duration(hours * 3600)}, before its machines work",
        hint="raise `deadline` or `max_hours` of the fleet"
        + (f", or more `budget: {{hours: N}}` in the file of {', '.join(capped)}" if capped else ""),
    )


def refuse(
    account: Account, asked: Asked, sweep: str, budget: float, one: Generation, timing: Timing
) -> NoReturn:
    """Nothing of a sweep's budget is left, or too little."""
    left = account.left(budget)
    whose = account.open[0].fleet if account.open else ""
    held = ", ".join(f"{each.kept:g} by {each.fleet}/{each.generation}" for each in account.open)
    if left > 0:
        check_enough(asked, min([left, *filter(None, [asked.fleet.max_cost])]), one, timing, of=sweep)
    raise UsageError(
        f"the budget of {sweep} is used up: {left:g} of {budget:g} left"
        + (f" (reserved: {held})" if held else ""),
        hint="allow more (`budget: {cost: N}` in its file, and submit that)"
        + (f", or wait until {whose} has ended (hostler down {whose} ends it)" if held else "")
        + f"; hostler cost {sweep} shows it",
    )


def check_enough(asked: Asked, money: float, one: Generation, timing: Timing, of: str = "") -> None:
    if money >= least(one, timing):
        return
    whose = f"what is left of the budget of {of}, {money:g}," if of else f"max_cost {money:g}"
    raise UsageError(
        f"{whose} is less than {show_duration(ROOM * timing.cap_margin)} of {asked.fleet.name}, "
        f"which costs {one.hourly:g} an hour",
        hint=f"fewer `workers`, or more money: {show_duration(timing.cap_margin)} of it are kept back, "
        "for machines that end late",
    )
