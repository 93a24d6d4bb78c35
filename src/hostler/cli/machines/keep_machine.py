"""A machine for hand work, `hostler up --keep`: a launch of its own, which goes when it is idle."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

import click

from hostler import settings
from hostler.backends.base import Cloud, Undone
from hostler.cli.here import open_at
from hostler.cli.terminal.ask import ask
from hostler.errors import HostlerError, StoreError, UsageError
from hostler.fleet import library, machines
from hostler.fleet.launcher import Launcher, completed
from hostler.money import funding, tariff
from hostler.money.tariff import Asked, Funded
from hostler.records.launch import launches, settlement
from hostler.spec import units
from hostler.spec.names import slug
from hostler.spec.project import Fleet
from hostler.spec.units import show_duration, show_money
from hostler.store import Store


def keep(workers: Launcher, idle: str, *, yes: bool) -> int:
    engine, fleet = workers.engine, replace(workers.fleet, workers=1)
    if not isinstance(engine, Cloud):
        raise UsageError(
            f"the machines of {fleet.name} stay up by themselves",
            hint=f"hostler ssh opens one of {fleet.name}",
        )
    seconds = _seconds(idle)
    if there := next((thing for thing in engine.remains(fleet) if thing.by_hand), None):
        return _told(fleet, there.name)
    store = open_at(workers.url)
    ready = workers.prepared(store)
    asked = _asked(engine, fleet)
    foreseen = funding.foresee(store, asked, settings.timing())
    click.echo(_what(asked, foreseen, seconds), err=True)
    if not ask("Start?", yes=yes):
        return 1
    library.bring(store)
    machines.ssh_key(workers.project, make=True)
    _close_gone(store, fleet)
    return _made(engine, fleet, ready, store, asked, seconds)


def _made(engine: Cloud, fleet: Fleet, ready: Launcher, store: Store, asked: Asked, idle: float) -> int:
    """Its money is agreed on first, as for every launch."""
    funded = funding.fund(store, asked, settings.timing())
    try:
        made = engine.keep(fleet, ready.launch((), funded=funded), idle)
    except HostlerError as error:
        with suppress(StoreError):
            watched = error.seconds if isinstance(error, Undone) else 0.0
            funding.cancel(store, funded, settings.timing(), watched)
        raise
    return _told(fleet, made.id)


def _told(fleet: Fleet, name: str) -> int:
    click.echo(name)
    click.echo(f"hostler: hostler ssh {fleet.name}/{name}; hostler down {fleet.name} removes it", err=True)
    return 0


def _close_gone(store: Store, fleet: Fleet) -> None:
    """None is there: whatever became of those before, they are over."""
    for one in launches.of_fleet(store, slug(fleet.name)):
        if one.by_hand and launches.gone_at(store, one.fleet, one.number) is None:
            settlement.close(store, one, settings.timing())


def _asked(engine: Cloud, fleet: Fleet) -> Asked:
    return replace(tariff.asked(completed(engine, fleet), engine.capabilities, 1, ()), by_hand=True)


def _seconds(text: str) -> float:
    try:
        found = units.duration(text)
    except ValueError as error:
        raise UsageError(f"--idle {text}: {error}", hint="like 30m or 2h") from None
    if found <= 0:
        raise UsageError(f"--idle {text}: the machine would be gone at once", hint="like 30m or 2h")
    return found


def _what(asked: Asked, foreseen: Funded, idle: float) -> str:
    price = asked.price.worker
    costs = f", {show_money(price)} an hour" if price else ""
    left = foreseen.seconds
    latest = f", and after {show_duration(round(left))} at the latest" if left else ""
    return (
        f"hostler: one machine of {asked.fleet.name}{costs}; it goes when unused for "
        f"{show_duration(idle)}{latest}"
    )
