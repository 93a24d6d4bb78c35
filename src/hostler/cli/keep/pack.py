"""`hostler pack`: the small files of sweeps that are over, moved into a few."""

from __future__ import annotations

import time
from dataclasses import asdict, replace

import click

from hostler import settings
from hostler.cli import here
from hostler.cli.terminal import output
from hostler.errors import DamagedError, HostlerError, MissingError, NewerFormatError, UsageError
from hostler.records import project
from hostler.records.packs import due, packer
from hostler.records.packs.packed_store import PackedStore, seen_through
from hostler.records.packs.packer import PackOutcome
from hostler.records.run import heartbeats, resolve
from hostler.records.sweep import sweeps
from hostler.spec.units import counted, duration, show_duration
from hostler.store import NotFound


def command(
    names: tuple[str, ...], everything: bool, older: str | None, store_url: str | None, as_json: bool
) -> int:
    """Pack sweeps that are over."""
    if bool(names) == everything:
        raise UsageError("name the sweeps to pack, or give --all", hint="hostler status lists them")
    age = _seconds(older)
    store = seen_through(here.open_here(store_url))
    chosen = [resolve.sweep(store, name) for name in names] or _known(store)
    if age is not None:
        chosen = [name for name in chosen if due.is_due(store, name, age)]
    _check_workers(store)
    outcomes = {name: outcome for name in dict.fromkeys(chosen) if (outcome := _copied(store, name))}
    for name, outcome in outcomes.items():
        if not outcome.open and not outcome.beaten:
            outcomes[name] = replace(outcome, gone=packer.finish(store, name, _wait))
    if as_json:
        output.print_json([{"sweep": name, **asdict(outcome)} for name, outcome in outcomes.items()])
    else:
        for name, outcome in outcomes.items():
            if not (everything and outcome.open):
                click.echo(_said(name, outcome))
    unread = len(outcomes) < len({*chosen})
    return int(unread or (not everything and any(outcome.open for outcome in outcomes.values())))


def _copied(store: PackedStore, name: str) -> PackOutcome | None:
    """None of a sweep that cannot be read, or is being deleted: that is said, and hinders no other."""
    try:
        job = sweeps.load(store, name)
        if rest := due.unsettled(store, name):
            click.echo(f"hostler: {name} has ended this minute; packed in {show_duration(rest)}", err=True)
            time.sleep(rest)
        return packer.copy(store, job)
    except (DamagedError, NewerFormatError, MissingError, NotFound) as error:
        click.echo(f"hostler: {name} is left alone: {error}", err=True)
        return None


def _seconds(older: str | None) -> float | None:
    try:
        return None if older is None else duration(older)
    except ValueError as error:
        raise UsageError(f"--older: {error}") from None


def _known(store: PackedStore) -> list[str]:
    return [name for name in sweeps.names(store) if sweeps.is_there(store, name)]


def _check_workers(store: PackedStore) -> None:
    lease = project.agreed(store, settings.timing()).lease
    older = heartbeats.older(store, lease)
    if older:
        raise HostlerError(
            f"{older[0]} is a worker of an older hostler, which cannot read packed runs",
            hint="pack when it has left: hostler status shows who runs",
        )


def _wait(seconds: float) -> None:
    text = show_duration(seconds)
    click.echo(f"hostler: the originals go in {text}; cut off, the next hostler pack removes them", err=True)
    time.sleep(seconds)


def _said(name: str, outcome: PackOutcome) -> str:
    if outcome.open:
        return f"{name} is not over: {counted(outcome.open, 'run')} open; hostler status {name}"
    if outcome.beaten:
        return f"{name}: another hostler pack is at it"
    left = f"; {counted(outcome.left, 'run')} that cannot be read stayed" if outcome.left else ""
    if not outcome.runs and not outcome.gone:
        return f"{name}: packed already{left}"
    return f"{name}: {counted(outcome.runs, 'run')} packed, {counted(outcome.gone, 'object')} gone{left}"
