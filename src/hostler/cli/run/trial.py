"""`--try`: the first run of a sweep, here, until it shows that it works; in a store of its own.

It goes the way every run goes (snapshot, packages, worker), so that what fails here would have failed
everywhere. It is over at its first sign of life, or when it ends, or when the time is up.
"""

from __future__ import annotations

import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

import click

from hostler.backends import registry
from hostler.backends.base import Backend, Launch
from hostler.cli.terminal import output
from hostler.fleet import submit
from hostler.records.rows import Row, rows
from hostler.records.run import control
from hostler.records.run.log import RunKey
from hostler.records.series.logs import LogReader
from hostler.spec.job import Budget, Job
from hostler.spec.names import slug
from hostler.spec.project import Fleet, Project
from hostler.spec.states import DONE, QUEUED, RUNNING
from hostler.spec.units import show_duration
from hostler.store import Store
from hostler.store.registry import open_store

LOOK = 0.2
PATIENCE = 20.0  # seconds until its worker is killed
TAIL = 15  # lines of a failed trial's output


@dataclass(frozen=True)
class Trial:
    row: Row
    seconds: float
    output: str


def try_first(project: Project, job: Job, index: int, limit: float) -> Trial:
    """Carry out run `index` until it logs a metric, ends, or `limit` seconds have passed."""
    alone = replace(job, name="try", rounds=(), runs=(job.params(index),), parallel=None, retries=0)
    alone = replace(alone, command=job.command_of(index), budget=Budget())
    with tempfile.TemporaryDirectory(prefix="hostler-try-") as folder:
        store = open_store(str(Path(folder) / "store"))
        done = submit.submit(store, project, alone)
        engine, fleet = registry.this_machine(), Fleet(slug(f"try {folder}"), registry.HERE, slots=1)
        launch = Launch(store.url, (done.job.name,), sys.executable, project.cache)
        engine.start(engine.plan(fleet, launch))
        try:
            return _watch(store, done.key, limit)
        finally:
            control.kill(store, done.key, by="hostler sweep --try")
            _end(engine, fleet)


def report(trial: Trial, job: Job) -> bool:
    """Print how it went; returns whether the sweep may be submitted."""
    problem = _problem(trial, job)
    if problem:
        click.echo("\n".join(f"  | {line}" for line in trial.output.splitlines()[-TAIL:]), err=True)
        click.echo(f"hostler: {problem}\n  → nothing was submitted; fix it, then again", err=True)
        return False
    took, said = show_duration(round(trial.seconds, 1)), output.metrics_text(trial.row)
    click.echo(f"hostler: the first run works ({took}{': ' + said if said else ''})", err=True)
    return True


def _problem(trial: Trial, job: Job) -> str:
    row = trial.row
    if row.state not in (DONE, QUEUED, RUNNING):
        return f"the first run failed: {(row.failure or {}).get('message', row.state)}"
    logged = [name for name in row.metrics if not name.startswith("system/")]
    if job.metric and row.state == DONE and job.metric not in logged:
        there = f"it logs {', '.join(logged)}" if logged else "it logs none"
        return f"the first run is done and has not logged the metric {job.metric}: {there}"
    return ""


def _watch(store: Store, key: RunKey, limit: float) -> Trial:
    begun = time.monotonic()
    while True:
        row = rows(store, [key.sweep])[0]
        spent = time.monotonic() - begun
        alive = any(not name.startswith("system/") for name in row.metrics)
        if row.state not in (QUEUED, RUNNING) or alive or spent >= limit:
            text = b"".join(piece.data for piece in LogReader(store, key.run).read())
            return Trial(row, spent, text.decode("utf-8", "replace"))
        time.sleep(LOOK)


def _end(engine: Backend, fleet: Fleet) -> None:
    """Its worker leaves, for nothing is left; the store goes only after it."""
    end = time.monotonic() + PATIENCE
    while engine.list(fleet):
        if time.monotonic() > end:
            engine.stop(fleet, now=True)
        time.sleep(0.05)
