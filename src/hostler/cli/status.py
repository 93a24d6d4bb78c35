"""`hostler status`: a row per run, live where there is a terminal."""

from __future__ import annotations

import click

from hostler.cli import here, output
from hostler.cli.table import print_table, watch_table
from hostler.records import resolve
from hostler.records.rows import Row, rows
from hostler.store import Store


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME…]")
@click.option("--watch", "-f", "watch", is_flag=True, help="Keep showing it until everything has ended.")
@click.option("--state", "states", multiple=True, help="Only runs in this state (may be repeated).")
@click.option("--tag", "tags", multiple=True, help="Only runs with this tag (may be repeated).")
@click.option("--trash", is_flag=True, help="Also what is in the trash.")
@here.store_option
@here.json_option
def command(
    names: tuple[str, ...],
    watch: bool,
    states: tuple[str, ...],
    tags: tuple[str, ...],
    trash: bool,
    store_url: str | None,
    as_json: bool,
) -> int:
    """What runs, what waits, what ended."""
    store = here.open_here(store_url)

    def look() -> list[Row]:
        found = _rows(store, names, trash)
        return [r for r in found if (not states or r.state in states) and set(tags) <= set(r.tags)]

    if as_json:
        output.print_json([output.row_json(row) for row in look()])
    elif watch:
        watch_table(look)
    else:
        print_table(look())
    return 0


def _rows(store: Store, names: tuple[str, ...], trash: bool) -> list[Row]:
    if not names:
        return rows(store, trash=trash)
    keys = [key for name in names for key in resolve.runs(store, name)]
    return output.rows_of(store, keys)
