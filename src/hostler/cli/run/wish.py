"""`--by` and `--under` of `hostler sweep`, read: what a person wants of the whole sweep."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import click

from hostler.cli.run.moments import LIKE, moment
from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.records.sweep import sweeps, target
from hostler.simulate import times
from hostler.simulate.times import VaryingSeconds
from hostler.spec.job import Budget, Job
from hostler.spec.units import show_duration, show_money
from hostler.store import Store

FOREVER = 30 * 86400.0  # seconds of a sweep that is only to be cheap


@dataclass(frozen=True)
class SweepTarget:
    """A person's wish for the whole sweep: done by a moment, for at most so much."""

    by: datetime | None
    under: float | None
    now: datetime
    rates: tuple[str, ...] = ()
    run_time: VaryingSeconds | None = None

    @property
    def seconds(self) -> float:
        return (self.by - self.now).total_seconds() if self.by else FOREVER

    @property
    def words(self) -> str:
        parts = [f"by {moment_words(self.by, self.now)}" if self.by else ""]
        parts += [f"under {show_money(self.under)}" if self.under is not None else ""]
        return " and ".join(filter(None, parts))


def moment_words(when: datetime, now: datetime) -> str:
    """Show a moment by its weekday in the next six days, else by its date. Pure."""
    if when.date() < (now + timedelta(days=6)).date():
        return f"{when:%a %H:%M}"
    return f"{when:%a %d %b %H:%M}" if when.year == now.year else f"{when:%a %d %b %Y %H:%M}"


def sweep_target(
    by: str | None,
    under: float | None,
    preempt: Sequence[str] = (),
    run_time: str | None = None,
    now: datetime | None = None,
) -> SweepTarget | None:
    """UsageError for a moment that has passed, or is none; None where nothing is asked for."""
    if by is None and under is None:
        if preempt or run_time:
            raise UsageError(
                "--preempt and --run-time are for --by and --under", hint="hostler simulate has them"
            )
        return None
    now = now or datetime.now().astimezone()
    try:
        when = moment(by, now).astimezone(now.tzinfo) if by is not None else None
    except OverflowError:  # the calendar's first or last day, in a zone where it is another one
        raise UsageError(f"--by: {by!r} is not a moment", hint=LIKE) from None
    except ValueError as error:
        raise UsageError(f"--by: {error}", hint=LIKE) from None
    if when is not None and when <= now:
        ago = show_duration(round((now - when).total_seconds()))
        raise UsageError(f"--by {by}: that was {ago} ago", hint=LIKE)
    if under is not None and not 0 < under < math.inf:
        raise UsageError(
            f"--under {under:g}: the money must be above 0, and a number", hint="for example --under 50"
        )
    length = times.times(run_time, "--run-time") if run_time else None
    return SweepTarget(when, under, now, tuple(preempt), length)


def capped(job: Job, wish: SweepTarget | None) -> Job:
    """The job with the money as its budget: every launch for it keeps that."""
    if wish is None or wish.under is None:
        return job
    own = job.budget.cost
    cost = wish.under if own is None else min(own, wish.under)
    budget: Budget = replace(job.budget, cost=cost)
    return replace(job, budget=budget)


def kept(store: Store, job: Job, wish: SweepTarget | None) -> tuple[Job, SweepTarget | None]:
    """Job and wish with the money that an earlier `--under` has set as the sweep's budget; only another
    `--under` changes it."""
    found = target.newest(store, job.name)
    money = found[1].under if found else None
    if money is None or (wish and wish.under is not None) or not sweeps.is_there(store, job.name):
        return job, wish
    own = job.budget.cost
    if sweeps.load(store, job.name).budget.cost != money or (own is not None and own <= money):
        return job, wish
    click.echo(f"hostler: {job.name} keeps the {show_money(money)} of --under; --under changes it", err=True)
    job = replace(job, budget=replace(job.budget, cost=money))
    return job, replace(wish, under=money) if wish else None
