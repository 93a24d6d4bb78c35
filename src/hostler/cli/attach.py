"""`hostler attach`: follow a run as if it had been started here."""

from __future__ import annotations

import click

from hostler.cli import here
from hostler.cli.follow import follow
from hostler.records.run import resolve


@click.command()
@click.argument("run")
@click.option("--raw", is_flag=True, help="Escape sequences as they are printed, for the terminal to obey.")
@here.store_option
@here.json_option
def command(run: str, raw: bool, store_url: str | None, as_json: bool) -> int:
    """Print what a run prints until it ends; returns the script's exit code. Escape sequences are shown
    (␛[31m), as in hostler logs.

    \b
    Ctrl-C once asks the run to save and stop, twice kills it;
    hostler logs -f RUN only looks.
    """
    store = here.open_here(store_url)
    return follow(store, resolve.run(store, run), as_json=as_json, raw=raw)
