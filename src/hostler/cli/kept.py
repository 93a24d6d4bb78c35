"""A machine for hand work, `hostler up --keep`: it belongs to no launch, and goes when it is idle."""

from __future__ import annotations

import time
from dataclasses import replace

import click

from hostler import settings
from hostler.backends.base import Cloud, Launch
from hostler.cli.ask import ask
from hostler.cli.here import open_at
from hostler.errors import UsageError
from hostler.fleet import funding, library, machines, tariff
from hostler.fleet.launcher import Launcher
from hostler.spec import units
from hostler.spec.project import Fleet
from hostler.spec.units import show_duration, show_money

IDLE = "30m"


def keep(workers: Launcher, idle: str, *, yes: bool) -> int:
    engine, fleet = workers.engine, replace(workers.fleet, workers=1)
    if not isinstance(engine, Cloud):
        raise UsageError(
            f"the machines of {fleet.name} are there anyway",
            hint=f"hostler ssh gets onto one of {fleet.name}",
        )
    seconds = _seconds(idle)
    store = open_at(workers.url)
    ready = workers.prepared(store)
    library.bring(store)
    machines.ssh_key(workers.project, make=True)
    launch = replace(ready.launch(()), deadline=_deadline(engine, fleet))
    click.echo(_what(engine, fleet, launch, seconds), err=True)
    if not ask("Start?", yes=yes):
        return 1
    made = engine.keep(fleet, launch, seconds)
    click.echo(made.id)
    click.echo(f"hostler: hostler ssh {fleet.name}/{made.id}; hostler down {fleet.name} removes it", err=True)
    return 0


def _seconds(text: str) -> float:
    try:
        found = units.duration(text)
    except ValueError as error:
        raise UsageError(f"--idle {text}: {error}", hint="like 30m or 2h") from None
    if found <= 0:
        raise UsageError(f"--idle {text}: the machine would be gone at once", hint="like 30m or 2h")
    return found


def _deadline(engine: Cloud, fleet: Fleet) -> float | None:
    """The fleet's own caps hold for this machine alone, too."""
    given = fleet.options.get("deadline")
    hours = [hours for hours in (fleet.max_hours, given / 3600 if given else None) if hours is not None]
    price = tariff.price(machines.completed(engine, fleet), 1).worker or 0.0
    now, margin = time.time(), settings.timing().cap_margin
    end = funding.until(now, fleet.max_cost, price, min(hours, default=None), margin)
    if end is not None and end <= now:
        raise UsageError(
            f"the caps of {fleet.name} leave no time for a machine, which costs {show_money(price)} an hour",
            hint=f"raise them: {show_duration(margin)} of the money are kept back for late ends",
        )
    return end


def _what(engine: Cloud, fleet: Fleet, launch: Launch, idle: float) -> str:
    price = tariff.price(machines.completed(engine, fleet), 1).worker
    costs = f", {show_money(price)} an hour" if price else ""
    left = launch.deadline - launch.at if launch.deadline is not None else None
    latest = f", and after {show_duration(round(left))} at the latest" if left else ""
    return (
        f"hostler: one machine of {fleet.name}{costs}; it goes when unused for {show_duration(idle)}{latest}"
    )
