"""After runs were queued again: workers for their sweeps. Shared by resume and retry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import click

from hostler.cli import here
from hostler.cli.run import pricing
from hostler.cli.steer.acting import NEEDLESS, REFUSED, Result
from hostler.cli.terminal import halt_hints, output
from hostler.errors import MissingError, UsageError
from hostler.fleet import machine_choice
from hostler.fleet.launcher import launcher
from hostler.fleet.secrets import check_secrets
from hostler.records.rows import rows
from hostler.records.run import resolve
from hostler.records.sweep import deadline, sweeps
from hostler.spec.job import Job
from hostler.spec.states import QUEUED, RUNNING
from hostler.store import Store

F = TypeVar("F", bound=Callable[..., Any])


def affords(
    store: Store, url: str, names: Sequence[str], on: str | None, *, no_start: bool, yes: bool
) -> bool:
    """Whether there is money for the workers and the person agrees, before anything is queued again."""
    if no_start:
        return True
    jobs: dict[str, Job] = {}
    for name in names:
        try:
            job = resolve.find(store, name)[0]
        except (MissingError, UsageError):  # said when it is acted on
            continue
        jobs[job.name] = job
    workers = machine_choice.as_learned(launcher(here.project(), url, on), store, list(jobs.values()))
    costs = pricing.outlay(store, workers, list(jobs.values()), settle=True)
    if pricing.agreed(costs, yes=yes):
        return True
    click.echo("hostler: nothing was queued", err=True)
    return False


def allow_hours(store: Store, names: Sequence[str]) -> None:
    """Before runs of these sweeps are queued again: hours that their files allow by now count. UsageError
    where a budget of hours is used up all the same."""
    for name in names:
        try:
            job = resolve.find(store, name)[0]
        except (MissingError, UsageError):  # said when it is acted on
            continue
        if not deadline.is_over(store, job):
            continue
        job = _with_hours(store, job, _hours_in_file(job))
        if deadline.is_over(store, job):
            why = deadline.why(job)
            raise UsageError(f"{job.name}: {why}", hint=halt_hints.more_hours(store, job.name))
        deadline.lift_if_allowed(store, job)


def _hours_in_file(job: Job) -> float | None:
    """The budget of hours in the sweep's file as it is today; the job's own, if the file is not here."""
    from hostler.backends.project_file import load_sweep  # a budget is seldom used up

    project = here.project()
    if not job.file or not (project.root / job.file).is_file():
        return job.budget.hours
    file = load_sweep(project.root / job.file, project)
    return file.budget.hours if file.name == job.title else job.budget.hours


def _with_hours(store: Store, job: Job, hours: float | None) -> Job:
    """The sweep with these hours, if they are more than it had."""
    while hours is None or hours > (job.budget.hours or 0):
        old, version = sweeps.load_version(store, job.name)
        changed = replace(old, budget=replace(old.budget, hours=hours))
        if old == changed or sweeps.submit(store, changed, version + 1):
            return changed
    return job


def start_for(
    store: Store,
    url: str,
    results: Sequence[Result],
    on: str | None,
    *,
    no_start: bool,
    also: Sequence[str] = (),
) -> None:
    """Start the fleet's workers for every sweep of which something waits now, and `also` for these."""
    waiting = list(
        dict.fromkeys([*also, *(result.row.sweep for result in results if result.row and waits(result))])
    )
    for name in waiting:
        halt = sweeps.halted(store, name)
        if halt:
            click.echo(f"hostler: {halt_hints.line(store, name, halt)}", err=True)
    if waiting and not no_start:
        jobs = [sweeps.load(store, name) for name in waiting]
        check_secrets(secret for job in jobs for secret in job.wanted)
        workers = machine_choice.as_learned(launcher(here.project(), url, on), store, jobs)
        shared = workers.engine.capabilities.shared
        workers.start_missing(waiting, _open(store, waiting) if shared else 0)


def _open(store: Store, names: Sequence[str]) -> int:
    """Number of open runs. Running ones count, too: their tasks are in the queue."""
    return sum(row.state in (QUEUED, RUNNING) for row in rows(store, names, say=output.saying()))


def waits(one: Result) -> bool:
    """Queued by us, or queued before with nobody known to come for it."""
    if one.kind == NEEDLESS:
        return one.row is not None and one.row.state == QUEUED
    return one.kind != REFUSED
