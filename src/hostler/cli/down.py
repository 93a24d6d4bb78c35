"""`hostler down`: end a fleet's workers, and prove by listing that none is left."""

from __future__ import annotations

import time
from collections.abc import Sequence

import click

from hostler import settings
from hostler.backends.base import WorkerInfo
from hostler.backends.registry import backend_of
from hostler.cli import here
from hostler.fleet.launcher import fleet_of

MARGIN = 15.0  # seconds over the grace that a worker has to give its runs back
LOOK = 0.3


@click.command()
@click.argument("fleet", required=False)
@click.option("--now", is_flag=True, help="Kill them: what was not saved is lost.")
def command(fleet: str | None, now: bool) -> int:
    """End the workers of a fleet. Their runs are saved and queued again; hostler up goes on with them."""
    meant = fleet_of(here.project(), fleet)
    engine = backend_of(meant)
    asked = sum(worker.count for worker in engine.stop(meant, now=now) if worker.alive)
    click.echo(f"hostler: {asked} workers of {meant.name} {'killed' if now else 'asked to leave'}", err=True)
    end = time.monotonic() + settings.timing().grace + MARGIN
    left = engine.list(meant)
    while any(worker.alive for worker in left) and time.monotonic() < end:
        time.sleep(LOOK)
        left = engine.list(meant)
    return _report(meant.name, left)


def _report(name: str, left: Sequence[WorkerInfo]) -> int:
    for worker in left:
        what = "is still there" if worker.alive else f"could not be asked: {worker.detail}"
        click.echo(f"hostler: {worker.id} {what}", err=True)
    if not left:
        click.echo(f"hostler: nothing of {name} is left", err=True)
    return int(bool(left))
