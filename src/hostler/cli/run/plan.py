"""`hostler plan`: what a sweep file would do; nothing is written anywhere."""

from __future__ import annotations

from pathlib import Path

import click

from hostler.backends.project_file import load_sweep
from hostler.cli import here
from hostler.cli.run import forecast, pricing
from hostler.cli.terminal import output
from hostler.fleet import preview
from hostler.fleet.launcher import sweep_launcher
from hostler.fleet.submit import code_mark
from hostler.fleet.sweep import draft_sweep
from hostler.train.fused.offer import offered


def command(file: Path, on: str | None, store_url: str | None, as_json: bool) -> int:
    """Show how many runs a sweep file has, the first and last few, and which are new, done or running."""
    given = load_sweep(file, here.project(), commanded=False)
    job, together = offered(draft_sweep(given), given.project.root, given.together)
    url = here.store_url(store_url, given.project)
    store = here.open_at(url)
    found = preview.look(store, job, code_mark(store, given.project, job.file))
    workers = sweep_launcher(given.project, url, on, job.parallel).prepared(store)
    costs = pricing.outlay(store, workers, [found.job], found.open)
    price = costs.asked.price.worker
    if as_json:
        plan = forecast.as_json(found, workers.fleet, price)
        output.print_json({**plan, "price": pricing.as_json(costs), "together": together})
    else:
        shown = [*forecast.lines(found, workers.fleet, price, together), *pricing.lines(costs)]
        click.echo("\n".join(shown))
        forecast.say_notes(given.notes)
    return 0
