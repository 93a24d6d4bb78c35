"""`hostler plan`: what a sweep file would do; nothing is written anywhere."""

from __future__ import annotations

from pathlib import Path

import click

from hostler.cli import forecast, here, output
from hostler.fleet import outlook
from hostler.fleet.launcher import sweep_launcher
from hostler.fleet.submit import code_mark
from hostler.fleet.sweep import draft_sweep
from hostler.spec.sweepfile import load_sweep


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--on", metavar="FLEET", help="Where (default: hostler.yaml's `fleet`, else this machine).")
@here.store_option
@here.json_option
def command(file: Path, on: str | None, store_url: str | None, as_json: bool) -> int:
    """How many runs a sweep file has, the first and last few, and what of it is new, done or running."""
    given = load_sweep(file, here.project(), commanded=False)
    job = draft_sweep(given)
    url = here.store_url(store_url, given.project)
    store = here.open_at(url)
    found = outlook.look(store, job, code_mark(store, given.project, job.file))
    fleet = sweep_launcher(given.project, url, on, job.parallel).prepared(store).fleet
    if as_json:
        output.print_json(forecast.as_json(found, fleet))
    else:
        click.echo("\n".join(forecast.lines(found, fleet)))
        forecast.say_notes(given.notes)
    return 0
