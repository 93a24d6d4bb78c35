"""`hostler prices`: the tables that costs are counted with, their age, and newer ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict

import click

from hostler.backends.prices import TableAge, old
from hostler.backends.registry import BACKENDS, part
from hostler.cli.terminal import output


def command(what: str | None, as_json: bool) -> int:
    """Show the tables of prices, after bringing newer ones if asked."""
    if what == "update":
        for name in BACKENDS:
            if catalogue := part(name, "catalogue"):
                click.echo(f"hostler: {catalogue.update()}", err=True)
    ages = list(_tables())
    if as_json:
        output.print_json([{**asdict(age), "old": bool(old(age.days))} for age in ages])
        return 0
    for table_age in ages:
        aged = "" if table_age.days is None else f", {table_age.days} days old"
        click.echo(f"{table_age.name} of {table_age.date}{aged}: {table_age.holds} ({table_age.source})")
        if remark := old(table_age.days):
            click.echo(f"  → {remark}")
    return 0


def _tables() -> Iterator[TableAge]:
    for name in BACKENDS:
        if table := part(name, "prices"):
            yield table.standing()
