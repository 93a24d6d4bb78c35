"""After runs were queued again: workers for their sweeps. Shared by resume and retry."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from hostler.cli import here
from hostler.cli.run import pricing
from hostler.cli.steer.acting import NEEDLESS, REFUSED, Result
from hostler.cli.terminal import halted, output
from hostler.errors import MissingError, UsageError
from hostler.fleet.launcher import launcher
from hostler.fleet.secrets import check_secrets
from hostler.records.rows import rows
from hostler.records.run import resolve
from hostler.records.sweep import sweeps
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
    found: dict[str, Job] = {}
    for name in names:
        try:
            job = resolve.find(store, name)[0]
        except (MissingError, UsageError):  # said when it is acted on
            continue
        found[job.name] = job
    workers = launcher(here.project(), url, on)
    costs = pricing.outlay(store, workers, list(found.values()), settle=True)
    if pricing.agreed(costs, yes=yes):
        return True
    click.echo("hostler: nothing was queued", err=True)
    return False


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
    waiting = list(dict.fromkeys([*also, *(one.row.sweep for one in results if one.row and waits(one))]))
    for name in waiting:
        halt = sweeps.halted(store, name)
        if halt:
            click.echo(f"hostler: {halted.line(name, halt)}", err=True)
    if waiting and not no_start:
        check_secrets(secret for name in waiting for secret in sweeps.load(store, name).wanted)
        workers = launcher(here.project(), url, on)
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
