"""`hostler status`: a row per run, live where there is a terminal."""

from __future__ import annotations

import click

from hostler.cli import here, output
from hostler.cli.table import nobody, print_table, watch_table
from hostler.records import resolve
from hostler.records.rows import Row, rows
from hostler.records.state import ALL
from hostler.store import Store


@click.command()
@click.argument("names", nargs=-1, metavar="[NAME…]")
@click.option("--watch", "-f", "watch", is_flag=True, help="Keep showing it until everything has ended.")
@click.option(
    "--state", "states", multiple=True, type=click.Choice(ALL), help="Only runs in this state (repeatable)."
)
@click.option("--tag", "tags", multiple=True, help="Only runs with this tag (repeatable).")
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

    found = look()
    if as_json:
        output.print_json([output.row_json(row) for row in found])
    elif not found:
        click.echo(_nothing(store, filtered=bool(states or tags)), err=True)
    elif watch:
        _hint(store, found)
        watch_table(look)
    else:
        print_table(found)
        _hint(store, found)
    return 0


def _rows(store: Store, names: tuple[str, ...], trash: bool) -> list[Row]:
    if not names:
        return rows(store, trash=trash)
    return output.rows_of(store, [key for name in names for key in resolve.runs(store, name)])


def _nothing(store: Store, *, filtered: bool) -> str:
    if filtered:
        return f"no such runs in {store.url}; hostler status shows all"
    return f"no runs yet in {store.url}\n  → hostler run train.py --lr 0.1   starts one"


def _hint(store: Store, found: list[Row]) -> None:
    hint = nobody(store, found)
    if hint:
        click.echo(f"  → {hint}", err=True)
