"""Costs of sweeps: the launches that served them, the money that is reserved, what is left.

A sweep bears its part of all that its fleets' workers cost, idle time too; a run what its attempts say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records.launch import launches
from hostler.records.sweep import sweeps
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.records.launch.settlement import Spend
    from hostler.settings import Timing


@dataclass(frozen=True)
class SweepCost:
    name: str
    spent: float  # by workers of its fleets, as far as it bears them
    reserved: float = 0.0  # and not spent yet, by launches that are not over
    budget: float | None = None
    left: float | None = None  # of the budget: neither spent nor reserved
    counted: float = 0.0  # against the budget, by launches that are over: all that they may have cost


def spends(store: Store, timing: Timing, say: Callable[[str], None] | None = None) -> list[Spend]:
    """Spends of all launches with a price. `say` gets what cannot be read, and that launch is left out;
    without it that is an error."""
    known = [generation for generation in launches.everywhere(store, say) if generation.price is not None]
    if not known:
        return []
    from hostler.records.launch import settlement  # most stores have no launch with a price
    from hostler.records.run import heartbeats

    now = heartbeats.readers_time(store)
    found = []
    for one in known:
        try:
            found.append(settlement.look(store, one, now, timing))
        except (DamagedError, NewerFormatError) as error:
            if say is None:
                raise
            say(str(error))
    return found


def of_sweep(store: Store, name: str, budget: float | None, found: Sequence[Spend]) -> SweepCost | None:
    """None where nothing is known that costs, and nothing bounds it."""
    from hostler.records.launch import ledger  # most sweeps have neither a price nor a budget

    account, first = ledger.read(store, name), sweeps.since(store, name)
    found = [spend for spend in found if spend.since(name) >= first]
    spent = sum(spend.of(name) for spend in found)
    if (
        budget is None
        and not account.reservations
        and not any(name in spend.generation.sweeps for spend in found)
    ):
        return None
    by_launch = {(spend.generation.fleet, spend.generation.number): spend.of(name) for spend in found}
    held = [
        (reservation.cost, by_launch.get((reservation.fleet, reservation.generation), 0.0))
        for reservation in account.open
    ]
    return SweepCost(
        name,
        round(spent, 6),
        round(sum(max(0.0, cost - used) for cost, used in held), 6),
        budget,
        None if budget is None else account.left(budget),
        round(account.committed - sum(reservation.kept for reservation in account.open), 6),
    )
