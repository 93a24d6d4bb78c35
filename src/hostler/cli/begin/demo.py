"""`hostler demo`: six small runs on two workers, one of them killed on the way; nothing is lost.

`hostler demo gce` tells it on an emulated Google (`demo_cloud.py`).

Everything is in one folder that may be deleted, and nothing runs on after it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import click

from hostler import proctable, settings
from hostler.backends.base import Backend, Launch
from hostler.backends.project_file import load_project
from hostler.backends.registry import backend
from hostler.cli import here
from hostler.cli.begin import demo_cloud
from hostler.cli.begin.demo_story import lay_out, went_on
from hostler.cli.terminal import output
from hostler.cli.terminal.table import is_terminal, print_table, watch_table
from hostler.fleet.submit import draft, named, submit
from hostler.records.checkpoint import checkpoints
from hostler.records.rows import Row, rows
from hostler.records.run import heartbeats
from hostler.spec.job import Job
from hostler.spec.names import slug
from hostler.spec.project import Fleet, Project
from hostler.spec.states import DONE, ENDED, QUEUED, RUNNING
from hostler.spec.units import counted
from hostler.store import Store

RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
WORKERS = 2
SETTLE = 0.2  # seconds; its checkpoints are written in one stroke, so a short look at them is enough
LOOK = 0.3
PATIENCE = 3.0  # seconds without any worker before the demo gives up
FILES = ("train.py", "hostler.yaml")
HERE, GCE = "here", "gce"


def command(where: str, folder: Path | None) -> int:
    """Six small runs here, with a worker killed on the way. Takes about 20 seconds."""
    if where == GCE:
        return demo_cloud.show(folder or Path(".hostler-demo-gce"))
    return _here(folder or Path(".hostler-demo"))


def _here(folder: Path) -> int:
    settings.choose(settle=SETTLE)
    project = _project(folder)
    store = here.open_at(project.store)
    job = submit(store, project, named(_draft(project), "demo"), again=True).job
    engine, fleet = backend("local"), Fleet(slug(f"demo {folder.absolute()}"), "local", WORKERS, slots=1)
    print(f"{len(RATES)} learning rates of {folder}/train.py, on {WORKERS} workers here\n", flush=True)
    engine.start(engine.plan(fleet, Launch(project.store, (job.name,), sys.executable)))
    try:
        _watch(_Show(store, job, engine, fleet))
    finally:
        engine.stop(fleet)
    return _report(rows(store, [job.name]), folder)


def _watch(show: _Show) -> None:
    """A live table where there is a terminal, else a line per change of state."""
    if is_terminal():
        watch_table(show.look, show.goes_on, every=LOOK)
        return
    said: dict[str, str] = {}
    while True:
        found = show.look()
        for row in found:
            if said.get(row.id, QUEUED) != row.state:
                said[row.id] = row.state
                print(f"{row.name} ({output.params_text(row)}): {row.state}", flush=True)
        if not show.goes_on(found):
            return
        time.sleep(LOOK)


@dataclass
class _Show:
    """The table's rows, each time it asks; in between, the accident and what comes of it."""

    store: Store
    job: Job
    engine: Backend
    fleet: Fleet
    victim: str = ""
    went_on: bool = False
    missed: float | None = None  # when no worker was there for the first time

    def look(self) -> Sequence[Row]:
        found = rows(self.store, [self.job.name])
        if not self.victim:
            self._accident(found)
        elif not self.went_on:
            self._watch_victim(found)
        return found

    def _accident(self, found: Sequence[Row]) -> None:
        """Kill the worker of a run that is on its way and has saved something."""
        for row in found:
            pid = self._pid(row) if row.state == RUNNING and checkpoints.committed(self.store, row.id) else 0
            if pid:
                os.kill(pid, signal.SIGKILL)
                self.victim = row.id
                print(f">>> kill -9 {pid}: the worker of {row.name}, in the middle of it", flush=True)
                return

    def _pid(self, row: Row) -> int:
        """The process that holds a run, if it is one that we started; 0 otherwise."""
        beat = heartbeats.read(self.store, row.session) if row.session else None
        pid, table = int((beat or {}).get("pid", 0)), proctable.table()
        ours = (int(worker.id) for worker in self.engine.list(self.fleet))
        return pid if any(pid in proctable.below(table, parent) for parent in ours) else 0

    def _watch_victim(self, found: Sequence[Row]) -> None:
        row = next(row for row in found if row.id == self.victim)
        line = went_on(self.store, row)
        if line:
            self.went_on = True
            print(f">>> {row.name}: attempt {row.attempt} {line}", flush=True)

    def goes_on(self, found: Sequence[Row]) -> bool:
        """Whether a run is still to end, and somebody may be there to take it: workers leave a sweep that was
        halted because its runs fail alike."""
        if all(row.state in ENDED for row in found):
            return False
        now = time.monotonic()
        if self.engine.list(self.fleet):
            self.missed = None
        elif self.missed is None:
            self.missed = now
        return self.missed is None or now - self.missed <= PATIENCE


def _project(folder: Path) -> Project:
    """The demo's own copy of its project, kept out of whatever project lies around it."""
    shipped = Path(__file__).parent / "demo_project"
    lay_out(folder, [shipped / name for name in FILES])
    return load_project(folder / "hostler.yaml")


def _draft(project: Project) -> Job:
    runs = [{"lr": rate} for rate in RATES]
    return draft(project, project.command or (), title=project.name, style=project.style, runs=runs)


def _report(found: Sequence[Row], folder: Path) -> int:
    if not is_terminal():  # there it stands already
        print_table(found)
    done = [row for row in found if row.state == DONE]
    if len(done) < len(found):
        click.echo(f"\nhostler: {counted(len(found) - len(done), 'run')} did not end well", err=True)
        return 1
    best = min(done, key=lambda row: row.metrics["loss"])
    again = sum(row.attempt > 1 for row in found)
    click.echo(f"\nAll {len(found)} runs are done; {again} of them lost its worker and went on.")
    click.echo(f"Best: {best.name} with {output.params_text(best)}, {output.metrics_text(best, 1)}\n")
    click.echo("\n".join(["Next:", *(f"  {line}" for line in _next(best, folder))]))
    return 0


def _next(best: Row, folder: Path) -> list[str]:
    program, store = _program(), shlex.join(["--store", str(folder / ".hostler")])
    return [
        f"{program} status {store}",
        f"{program} logs {store} {best.name}",
        f"{program} show {store} {best.name}",
        f"cd {shlex.quote(str(folder))} && {program} run lr=0.2",
    ]


def _program() -> str:
    """How this very hostler is called from any folder."""
    beside = Path(sys.executable).with_name("hostler")
    if beside.exists():
        return "hostler" if shutil.which("hostler") == str(beside) else shlex.quote(str(beside))
    return shlex.join([sys.executable, "-m", "hostler"])
