"""The price of a fleet as it is known here: its own, or that of a table and this machine's settings."""

from __future__ import annotations

from collections.abc import Sequence

from hostler import env, settings
from hostler.backends.base import Capabilities
from hostler.fleet import gce_table, prices
from hostler.fleet.funding import Asked
from hostler.fleet.prices import FleetPrice
from hostler.spec.job import Job
from hostler.spec.project import Fleet


def price(fleet: Fleet, workers: int) -> FleetPrice:
    """Of so many workers. The table is read only for a fleet that names a machine type."""
    if fleet.price is not None or not fleet.options.get("machine"):
        return prices.price(fleet, workers)
    table = gce_table.load(env.prices() or gce_table.OWN)
    return prices.price(fleet, workers, table, settings.sizes().disk_price)


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
