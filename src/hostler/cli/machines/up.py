"""`hostler up`: workers of a fleet for what waits in the store, on every machine that has none."""

from __future__ import annotations

from collections.abc import Sequence

import click

from hostler.backends.base import Permitted, WorkerInfo
from hostler.cli import here
from hostler.cli.machines import keep_machine
from hostler.cli.run import pricing
from hostler.cli.terminal import output
from hostler.errors import UsageError
from hostler.fleet.fleet_choice import fleet_of
from hostler.fleet.launcher import Launcher, launcher
from hostler.fleet.secrets import check_secrets
from hostler.records.rows import rows
from hostler.records.sweep import sweeps
from hostler.spec.states import QUEUED, RUNNING


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
        return keep_machine.keep(launcher(here.project(), url, fleet), idle, yes=yes)
    fleet_of(here.project(), fleet, url)  # a name that is none is told also where nothing waits
    store = here.open_at(url)
    found = rows(store, say=output.saying())
    open_runs = [row for row in found if row.state == QUEUED or (row.state == RUNNING and row.stale)]
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
        return f"{count} worker{'s' * (count != 1)} of {name} started"
    if len(there) == 1:
        return f"the worker of {name} is up already and takes what waits: none was started"
    return f"all {len(there)} workers of {name} are up already and take what waits: none was started"
