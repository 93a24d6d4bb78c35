"""The price of a launch, before it is agreed to, and what was agreed.

A fleet's price is its own, or that of a table and this machine's settings.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from hostler.backends.prices import GIVEN, FleetPrice
from hostler.backends.registry import BACKENDS, part
from hostler.frozen import dataclass

if TYPE_CHECKING:
    from hostler.backends.base import Capabilities
    from hostler.spec.job import Job
    from hostler.spec.project import Fleet


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


def price(fleet: Fleet, workers: int) -> FleetPrice:
    """For so many workers; unknown where neither the fleet nor its platform tells. The fleet's own price
    stands over the platform's, for each of the machines that it leaves open."""
    table = part(fleet.backend, "prices") if fleet.backend in BACKENDS else None
    if fleet.price is not None:
        own = FleetPrice(workers, fleet.price, GIVEN)
        with_machines: Callable[[Fleet, FleetPrice], FleetPrice] = getattr(table, "with_machines", _alone)
        return with_machines(fleet, own)
    known: FleetPrice = table.price(fleet, workers) if table else FleetPrice(workers)
    return known


def _alone(fleet: Fleet, own: FleetPrice) -> FleetPrice:
    return own


def asked(fleet: Fleet, does: Capabilities, workers: int, jobs: Sequence[Job]) -> Asked:
    """A launch of so many workers for these sweeps, as its money is asked for."""
    own = does.shares_disk and not does.shared
    return Asked(
        fleet,
        price(fleet, workers),
        jobs,
        own=own,
        queued=does.shared,
        billed=does.billed,
        lasts=_hours(does.lasts),
        longest=_hours(does.longest),
    )


def counts(asked: Asked) -> bool:
    """Whether there is anything to agree on: a price, a cap, or a budget that might have to be kept."""
    fleet = asked.fleet
    if not asked.price.workers:
        return False
    capped = fleet.max_cost is not None or fleet.max_hours is not None or fleet.options.get("deadline")
    return bool(capped or asked.price.worker or asked.billed or (asked.budgets and not asked.own))


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 3600
