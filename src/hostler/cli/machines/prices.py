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
    found = list(_tables())
    if as_json:
        output.print_json([{**asdict(one), "old": bool(old(one.days))} for one in found])
        return 0
    for one in found:
        aged = "" if one.days is None else f", {one.days} days old"
        click.echo(f"{one.name} of {one.date}{aged}: {one.holds} ({one.source})")
        if remark := old(one.days):
            click.echo(f"  → {remark}")
    return 0


def _tables() -> Iterator[TableAge]:
    for name in BACKENDS:
        if table := part(name, "prices"):
            yield table.standing()
