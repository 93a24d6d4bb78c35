"""`hostler down`: end a fleet's workers, and prove by listing that none is left."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from hostler import settings
from hostler.backends.base import Cloud, Hosted, WorkerInfo
from hostler.backends.registry import backend_of
from hostler.cli import here
from hostler.fleet import late_hosts, machines
from hostler.fleet.fleet_choice import fleet_of
from hostler.spec.project import Fleet
from hostler.spec.units import counted

MARGIN = 15.0  # seconds over the grace that a worker has to give its runs back
LOOK = 0.3
CLOUD = 300.0  # seconds that a cloud may take to let go of what was deleted


def command(fleet: str | None, now: bool, store_url: str | None) -> int:
    """End the workers of a fleet. Their runs are saved and queued again; hostler up goes on with them."""
    project = here.project()
    meant = fleet_of(project, fleet, here.store_url(store_url))
    if fleet is None and (others := [name for name in project.fleets if name != meant.name]):
        click.echo(
            f"hostler: this ends {meant.name} only; hostler down FLEET ends another: {', '.join(others)}",
            err=True,
        )
    engine = backend_of(meant)
    if isinstance(engine, Cloud):
        return _remove(engine, meant, store_url, now=now)
    late_hosts.forget(here.store_url(store_url), meant.name)
    asked = sum(worker.count for worker in engine.stop(meant, now=now) if worker.alive)
    who = f"{counted(asked, 'worker')} of {meant.name}"
    click.echo(f"hostler: {who} {'killed' if now else 'asked to leave'}", err=True)
    end = time.monotonic() + settings.timing().grace + MARGIN
    worker_infos = engine.list(meant)
    while any(worker.alive for worker in worker_infos) and time.monotonic() < end:
        time.sleep(LOOK)
        worker_infos = engine.list(meant)
    if not worker_infos:
        engine.stop(meant, now=now)  # what they alone had a use for goes, too
    return _report(meant.name, worker_infos)


def _remove(engine: Cloud, fleet: Fleet, store_url: str | None, *, now: bool) -> int:
    """All that there is of it, found by what it says of itself; twice, since a launch may be under way."""
    machines.close_all(here.store_url(store_url), fleet)
    end = time.monotonic() + CLOUD
    while True:
        left = engine.remains(fleet)
        if not left or time.monotonic() >= end:
            break
        click.echo(f"hostler: removing {', '.join(map(str, left))}", err=True)
        engine.stop(fleet, now=now)
    for thing in left:
        click.echo(f"hostler: {thing} is still there", err=True)
    if not left:
        machines.settle_all(here.store_url(store_url), fleet)
        click.echo(f"hostler: nothing of {fleet.name} is left", err=True)
    for line in engine.standing(fleet) if isinstance(engine, Hosted) else ():
        click.echo(f"hostler: {line}", err=True)
    return int(bool(left))


def _report(name: str, left: Sequence[WorkerInfo]) -> int:
    for worker in left:
        what = "is still there" if worker.alive else f"could not be asked: {worker.detail}"
        click.echo(f"hostler: {worker.id} {what}", err=True)
    if not left:
        click.echo(f"hostler: nothing of {name} is left", err=True)
    return int(bool(left))
