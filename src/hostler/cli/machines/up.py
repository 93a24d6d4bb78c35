"""`hostler up`: workers of a fleet for what waits in the store, on every machine that has none."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace

import click

from hostler import settings
from hostler.backends.base import Cloud, Permitted, Undone, WorkerInfo
from hostler.cli import here
from hostler.cli.here import open_at
from hostler.cli.run import pricing
from hostler.cli.terminal import output
from hostler.cli.terminal.ask import ask
from hostler.errors import HostlerError, StoreError, UsageError
from hostler.fleet import library, machines
from hostler.fleet.fleet_choice import completed, fleet_of
from hostler.fleet.launcher import Launcher, launcher
from hostler.fleet.secrets import check_secrets
from hostler.money import funding, tariff
from hostler.money.tariff import Asked, Funded
from hostler.records.launch import launches, settlement
from hostler.records.rows import rows
from hostler.records.sweep import sweeps
from hostler.spec import units
from hostler.spec.names import slug
from hostler.spec.project import Fleet
from hostler.spec.states import QUEUED, RUNNING
from hostler.spec.units import counted, show_duration, show_money
from hostler.store import Store


def command(
    fleet: str | None,
    keep: bool,
    idle: str,
    dry_run: bool,
    role: str | None,
    yes: bool,
    store_url: str | None,
) -> int:
    """Start a fleet's workers for all that is queued, on its machines that have none."""
    url = here.store_url(store_url)
    if role is not None:
        return _role(launcher(here.project(), url, fleet), role)
    if keep:
        return keep_one(launcher(here.project(), url, fleet), idle, yes=yes)
    fleet_of(here.project(), fleet, url)  # a name that is none is told also where nothing waits
    store = here.open_at(url)
    found = rows(store, say=output.saying())
    takable = (row for row in found if not row.by_hand)
    open_runs = [row for row in takable if row.state == QUEUED or (row.state == RUNNING and row.stale)]
    waiting = list(dict.fromkeys(row.sweep for row in open_runs))
    held = sum(row.state == RUNNING and not row.stale and row.sweep in waiting for row in found)
    if dry_run:
        click.echo(launcher(here.project(), url, fleet).foreseen(store, waiting, len(open_runs) + held).text)
        return 0
    if not waiting:
        click.echo("hostler: nothing waits in the store, so nothing is started", err=True)
        return 0
    jobs = [sweeps.load(store, name) for name in waiting]
    check_secrets(secret for job in jobs for secret in job.wanted)
    workers = launcher(here.project(), url, fleet).beside_others()
    costs = pricing.outlay(store, workers, jobs, len(open_runs) + held, settle=True)
    if not pricing.agreed(costs, yes=yes):
        click.echo("hostler: nothing was started", err=True)
        return 1
    started = workers.start_missing(waiting, len(open_runs) + held)
    new = [worker for worker in started if worker.host not in workers.skip]
    for worker in new:
        click.echo(f"{worker.id}")
    click.echo(f"hostler: {_said(new, started, workers.fleet.name)}", err=True)
    return 0


def _role(workers: Launcher, who: str) -> int:
    engine, fleet = workers.engine, workers.fleet
    if not isinstance(engine, Permitted):
        raise UsageError(
            f"the rights for {fleet.name} cannot be printed: {fleet.backend} has no text for them",
            hint=f"docs/{fleet.backend}.md lists what it needs",
        )
    click.echo(engine.role(fleet, who), nl=False)
    return 0


def _said(new: Sequence[WorkerInfo], there: Sequence[WorkerInfo], name: str) -> str:
    count = sum(worker.count for worker in new)
    if new or not there:
        return f"{counted(count, 'worker')} of {name} started"
    if len(there) == 1:
        return f"the worker of {name} is up already and takes what waits: none was started"
    return f"all {len(there)} workers of {name} are up already and take what waits: none was started"


# A machine for hand work, `hostler up --keep`: a launch of its own, which goes when it is idle.


def keep_one(workers: Launcher, idle: str, *, yes: bool) -> int:
    engine, fleet = workers.engine, replace(workers.fleet, workers=1)
    if not isinstance(engine, Cloud):
        raise UsageError(
            f"the machines of {fleet.name} stay up by themselves",
            hint=f"hostler ssh opens one of {fleet.name}",
        )
    seconds = _seconds(idle)
    if there := next((thing for thing in engine.remains(fleet) if thing.by_hand), None):
        return _told(fleet, there.name)
    store = open_at(workers.url)
    ready = workers.prepared(store)
    asked = _asked(engine, fleet)
    foreseen = funding.foresee(store, asked, settings.timing())
    click.echo(_what(asked, foreseen, seconds), err=True)
    if not ask("Start?", yes=yes):
        return 1
    library.bring(store)
    machines.ssh_key(workers.project, make=True)
    _close_gone(store, fleet)
    return _made(engine, fleet, ready, store, asked, seconds)


def _made(engine: Cloud, fleet: Fleet, ready: Launcher, store: Store, asked: Asked, idle: float) -> int:
    """Its money is agreed on first, as for every launch."""
    funded = funding.fund(store, asked, settings.timing())
    try:
        made = engine.keep(fleet, ready.launch((), funded=funded), idle)
    except HostlerError as error:
        with suppress(StoreError):
            watched = error.seconds if isinstance(error, Undone) else 0.0
            funding.cancel(store, funded, settings.timing(), watched)
        raise
    return _told(fleet, made.id)


def _told(fleet: Fleet, name: str) -> int:
    click.echo(name)
    click.echo(f"hostler: hostler ssh {fleet.name}/{name}; hostler down {fleet.name} removes it", err=True)
    return 0


def _close_gone(store: Store, fleet: Fleet) -> None:
    """None is there: whatever became of those before, they are over."""
    for generation in launches.of_fleet(store, slug(fleet.name)):
        if generation.by_hand and launches.gone_at(store, generation.fleet, generation.number) is None:
            settlement.close(store, generation, settings.timing())


def _asked(engine: Cloud, fleet: Fleet) -> Asked:
    return replace(tariff.asked(completed(engine, fleet), engine.capabilities, 1, ()), by_hand=True)


def _seconds(text: str) -> float:
    try:
        seconds = units.duration(text)
    except ValueError as error:
        raise UsageError(f"--idle {text}: {error}", hint="for example 30m or 2h") from None
    if seconds <= 0:
        raise UsageError(f"--idle {text}: the machine would be gone at once", hint="for example 30m or 2h")
    return seconds


def _what(asked: Asked, foreseen: Funded, idle: float) -> str:
    price = asked.price.worker
    costs = f", {show_money(price)} an hour" if price else ""
    left = foreseen.seconds
    latest = f", and after {show_duration(round(left))} at the latest" if left else ""
    return (
        f"hostler: one machine of {asked.fleet.name}{costs}; it goes when unused for "
        f"{show_duration(idle)}{latest}"
    )
