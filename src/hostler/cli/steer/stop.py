"""`hostler stop`: runs save and end; `--now` does not wait for them."""

from __future__ import annotations

import click

from hostler.backends.registry import backend_of
from hostler.cli import here
from hostler.cli.steer import acting
from hostler.cli.steer.acting import Result
from hostler.errors import UsageError
from hostler.fleet.fleet_choice import fleet_of
from hostler.records.rows import Row
from hostler.records.run import control
from hostler.spec.units import counted


def command(
    names: tuple[str, ...],
    now: bool,
    workers: bool,
    on: str | None,
    store_url: str | None,
    as_json: bool,
) -> int:
    """Save and end runs; hostler resume goes on with them."""
    if not names and not workers:
        raise UsageError("name the runs or sweeps to stop", hint="hostler status lists them")
    store = here.open_here(store_url)
    what = control.kill if now else control.stop

    def do(row: Row) -> Result:
        return acting.result(row, what(store, row.key, by="hostler stop"))

    acting.hold(store, names, "stopped by a person")
    code = acting.report(store, acting.act(store, names, do), as_json=as_json)
    if workers:
        _end_workers(on, now)
    return code


def _end_workers(on: str | None, now: bool) -> None:
    fleet = fleet_of(here.project(), on)
    ended = sum(worker.count for worker in backend_of(fleet).stop(fleet, now=now) if worker.alive)
    who = f"{counted(ended, 'worker')} of {fleet.name}"
    click.echo(f"{who}: {'killed' if now else 'asked to leave'}", err=True)
