"""`hostler attach`: follow a run as if it had been started here."""

from __future__ import annotations

import click

from hostler.cli import here
from hostler.cli.follow import follow
from hostler.records import resolve


@click.command()
@click.argument("run")
@here.store_option
@here.json_option
def command(run: str, store_url: str | None, as_json: bool) -> int:
    """Print what a run prints until it ends; returns the script's exit code.

    \b
    Ctrl-C once asks the run to save and stop, twice kills it;
    hostler logs -f RUN only looks.
    """
    store = here.open_here(store_url)
    return follow(store, resolve.run(store, run), as_json=as_json)
