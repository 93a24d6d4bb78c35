"""`hostler parallel`: how many runs of a sweep may run at once, changed while it runs."""

from __future__ import annotations

from dataclasses import replace

import click

from hostler.cli import here
from hostler.cli.terminal import output
from hostler.errors import UsageError
from hostler.records.rows import rows
from hostler.records.run import resolve
from hostler.records.sweep import concurrency, sweeps
from hostler.spec.files.sweepfile import AUTO
from hostler.spec.job import Job
from hostler.spec.states import RUNNING
from hostler.store import Store


def command(sweep: str, number: str, store_url: str | None, as_json: bool) -> int:
    """Let at most N runs of a sweep run at once, on all workers together; `none` takes the bound away, `auto`
    has each machine measure how many fit."""
    auto = number == AUTO
    bound = None if auto else _bound(number)
    store = here.open_here(store_url)
    job = _changed(store, resolve.sweep(store, sweep), bound, auto=auto)
    running = [
        row for row in rows(store, [job.name], touched=True, say=output.saying()) if row.state == RUNNING
    ]
    if bound is not None:
        concurrency.enrol(store, job, [(row.id, row.claim) for row in running])
    if as_json:
        output.print_json({"sweep": job.name, "parallel": bound, "running": len(running)})
    else:
        text = "as many at once as fit" if job.auto else "no bound"
        text = text if bound is None else f"at most {bound} at once"
        click.echo(f"{job.name}: {text} ({len(running)} running now)")
    return 0


def _bound(number: str) -> int | None:
    if number == "none":
        return None
    if not number.isdecimal() or int(number) < 1:
        raise UsageError(
            f"{number!r} is not a number of runs", hint="1 or more, none or auto; hostler pause for 0"
        )
    return int(number)


def _changed(store: Store, name: str, bound: int | None, *, auto: bool) -> Job:
    while True:
        old, version = sweeps.load_version(store, name)
        job = replace(old, parallel=bound, auto=auto or old.auto)
        if old == job or sweeps.submit(store, job, version + 1):
            return job
