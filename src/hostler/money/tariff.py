"""The price of a fleet as it is known here: its own, or that of a table and this machine's settings."""

from __future__ import annotations

from collections.abc import Sequence

from hostler.backends.base import Capabilities
from hostler.backends.prices import GIVEN, FleetPrice
from hostler.backends.registry import BACKENDS, part
from hostler.money.funding import Asked
from hostler.spec.job import Job
from hostler.spec.project import Fleet


def price(fleet: Fleet, workers: int) -> FleetPrice:
    """For so many workers; unknown where neither the fleet nor its platform tells."""
    if fleet.price is not None:
        return FleetPrice(workers, fleet.price, GIVEN)
    table = part(fleet.backend, "prices") if fleet.backend in BACKENDS else None
    known: FleetPrice = table.price(fleet, workers) if table else FleetPrice(workers)
    return known


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


def _hours(seconds: float | None) -> float | None:
    return None if seconds is None else seconds / 3600
