"""`hostler pause`: runs save and keep their place until they are resumed."""

from __future__ import annotations

import click

from hostler.cli import acting, here
from hostler.cli.acting import Result
from hostler.records.rows import Row
from hostler.records.run import control


@click.command()
@click.argument("names", nargs=-1, required=True, metavar="NAME…")
@here.store_option
@here.json_option
def command(names: tuple[str, ...], store_url: str | None, as_json: bool) -> int:
    """Save runs and set them aside; hostler resume goes on with them."""
    store = here.open_here(store_url)

    def do(row: Row) -> Result:
        return acting.result(row, control.pause(store, row.key, by="hostler pause"))

    acting.hold(store, names, "paused by a person")
    return acting.report(store, acting.act(store, names, do), as_json=as_json)
