"""A sweep's budget of hours: from when its first run was taken, all by the store's own clock.

When they are over the sweep is halted: nothing more of it is taken, and what runs is set aside. A file that
allows more, submitted again, lifts that.
"""

from __future__ import annotations

from math import ceil, floor, log10
from typing import NamedTuple

from hostler.records import layout
from hostler.records.body import encode
from hostler.records.run import heartbeats
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.spec.units import show_duration
from hostler.store import Store

WHY = "hours"  # what kind of halt it is


def begin(store: Store, name: str) -> None:
    """The first run of the sweep is taken now, unless that was so before."""
    if next(iter(store.list(layout.began(name))), None) is None:
        store.put(layout.began(name), encode({}), if_absent=True)


class Use(NamedTuple):
    """The hours that a sweep has used, and when they began, in seconds since 1970."""

    hours: float
    began: float


def use(store: Store, name: str) -> Use | None:
    """Hours since the sweep began; None before that."""
    entry = next(iter(store.list(layout.began(name))), None)
    if entry is None:
        return None
    return Use((heartbeats.store_time(store) - entry.modified) / 3600, entry.modified)


def spent(store: Store, name: str) -> float | None:
    """The hours of `use` alone."""
    used = use(store, name)
    return used.hours if used else None


def raised(hours: float, used: float) -> float:
    """A budget that allows as many hours again from now on, rounded up to two digits. Pure."""
    wanted = hours + used
    digit = floor(log10(wanted)) - 1
    return round(ceil(wanted / 10.0**digit) * 10.0**digit, max(0, -digit))


def is_over(store: Store, job: Job) -> bool:
    if job.budget.hours is None:
        return False
    hours = spent(store, job.name)
    return hours is not None and hours >= job.budget.hours


def halt_if_over(store: Store, job: Job) -> bool:
    if not is_over(store, job):
        return False
    return sweeps.halt(store, job.name, why(job), kind=WHY)


def why(job: Job) -> str:
    """The halt in words."""
    return f"its budget of {show_duration((job.budget.hours or 0) * 3600)} is used up"


def lift_if_allowed(store: Store, job: Job) -> None:
    """After a new round: hours that are over no longer do not hold it up."""
    halted = sweeps.halted(store, job.name)
    if halted and halted.get("kind") == WHY and not is_over(store, job):
        sweeps.lift(store, job.name)
