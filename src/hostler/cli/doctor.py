"""`hostler doctor`: checks store, machine and tools; each line says what to do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click

from hostler import env, settings
from hostler.cli import checkup, cloudcheck, fleetcheck, here, output, storecheck
from hostler.cli.checkup import BAD, OK, WARN, Check
from hostler.cli.paint import paint
from hostler.spec.place import default_store

COLOURS = {OK: "green", WARN: "yellow", BAD: "red"}


@click.command()
@click.option("--remove", is_flag=True, help="Remove what clouds hold and no fleet needs; asks first.")
@here.yes_option
@here.store_option
@here.json_option
def command(remove: bool, yes: bool, store_url: str | None, as_json: bool) -> int:
    """Check store, machine, tools and the machines of fleets. Exits with 1 if anything is bad."""
    found = []
    for check in _checks(store_url, remove=remove, yes=yes):
        if check in found:  # a fleet and its cloud have the same trouble
            continue
        found.append(check)
        if not as_json:
            _print(check)
    if as_json:
        output.print_json([asdict(check) for check in found])
    return int(any(check.level == BAD for check in found))


def _checks(store_url: str | None, *, remove: bool, yes: bool) -> Iterator[Check]:
    project, said = checkup.project_file(Path.cwd())
    yield said
    yield from checkup.machine(project)
    url = store_url or env.store_url() or (project.store if project else default_store(Path.cwd()))
    yield from storecheck.store(url, settings.timing().retry)
    if project:
        yield from fleetcheck.fleets(project, url)
        yield from cloudcheck.clouds(project, url, remove=remove, yes=yes)


def _print(check: Check) -> None:
    click.echo(f"{paint(f'{check.level:<4}', COLOURS[check.level])}  {check.what:<9}  {check.detail}")
    if check.todo:
        click.echo(f"{'':17}→ {check.todo}")
