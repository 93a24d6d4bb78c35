"""`hostler demo gce`: four runs on two spot VMs of an emulated Google, one of them taken away on the way.

Nothing leaves this machine and nothing is paid. The VMs are processes, the bucket is in memory; both end with
the demo, however it ends.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from hostler import env, settings
from hostler.cli import here
from hostler.cli.begin.demo_story import lay_out, went_on
from hostler.cli.terminal import output
from hostler.emulators.gce import GceEmulator, emulator
from hostler.errors import MachineError, UsageError
from hostler.records.checkpoint import checkpoints
from hostler.records.rows import Row, rows
from hostler.spec.states import DONE, ENDED, QUEUED, RUNNING
from hostler.store import Store, open_store

PROJECT, BUCKET, SWEEP = "emulated", "hostler-demo", "demo"
STORE = f"gs://{BUCKET}/{SWEEP}"
SCALE = 20.0
EMPTY = "us-central1-a"  # the first zone of the fleet, where there is nothing to be had
TIMES = {"beat": 0.5, "lease": 6, "flush": 0.3, "flush_max": 2, "settle": 0.2, "wait_max": 0.5, "grace": 5}
LOOK = 0.3
PATIENCE = 180.0  # seconds for all of it
SHIPPED = Path(__file__).parent


def show(folder: Path) -> int:
    if not sys.platform.startswith("linux"):
        raise UsageError("the emulated Google needs Linux", hint="hostler demo")
    open_store(STORE)  # without its driver nothing begins
    own = SHIPPED / "demo_gce_project"
    lay_out(folder, [SHIPPED / "demo_project" / "train.py", own / "hostler.yaml", own / "sweep.yaml"])
    settings.choose(**TIMES)
    with emulator(PROJECT, buckets=[BUCKET], scale=SCALE) as cloud:
        env.adopt({**cloud.environ(), env.STORE: STORE})  # not the one that is used otherwise
        print(f"Google Compute Engine, emulated here: one second is {SCALE:g} of its seconds", flush=True)
        cloud.stockout(EMPTY)
        print(f">>> {EMPTY} has no VM left\n", flush=True)
        _type(folder, "sweep", "--on", "burst", "-y", "sweep.yaml")
        story = _Story(here.open_at(STORE), cloud)
        story.watch()
        _type(folder, "status", SWEEP)
        _type(folder, "cost")
        return story.report()


def _type(folder: Path, *words: str) -> None:
    """Run a command as a person types it in the project's folder, and print its output."""
    print(f"$ hostler {' '.join(words)}", flush=True)
    done = subprocess.run([sys.executable, "-m", "hostler", *words], cwd=folder, env=env.inherited())
    print(flush=True)
    if done.returncode:
        raise MachineError(f"`hostler {words[0]}` ended with {done.returncode}")


@dataclass
class _Story:
    """Tells what happens, line by line; in between, the accident and its consequences."""

    store: Store
    cloud: GceEmulator
    victim: str = ""  # the run
    machine: str = ""  # where it was, and that VM's number
    number: str = ""
    back: bool = False
    went_on: bool = False
    said: dict[str, str] = field(default_factory=dict)

    def watch(self) -> None:
        """Until every run has ended and the fleet has taken itself down."""
        end = time.monotonic() + PATIENCE
        while not self._over(found := self._rows()):
            self._tell(found)
            if not self.victim:
                self._accident(found)
            else:
                self._aftermath(found)
            if time.monotonic() > end:
                raise MachineError(f"the demo did not finish within {PATIENCE:g} seconds")
            time.sleep(LOOK)
        self._tell(found)
        print(">>> no work is left: the fleet has removed itself\n", flush=True)

    def report(self) -> int:
        done = [row for row in self._rows() if row.state == DONE]
        seconds = sum(usage.seconds for usage in self.cloud.usage() if usage.kind == "machine")
        click.echo(
            f"The platform's own count: {seconds / SCALE:.0f} seconds of VMs, and nothing left of them:"
        )
        click.echo(f"{len(self.cloud.left())} VMs, disks, groups and templates.")
        if len(done) < len(self._rows()) or not self.went_on:
            click.echo("\nhostler: the demo did not go as it should", err=True)
            return 1
        click.echo(f"All {len(done)} runs are done; one lost its VM and went on.\n")
        click.echo("Next: with a `project:` and a `store:` of your own, the same fleet runs at Google.")
        return 0

    def _rows(self) -> Sequence[Row]:
        return rows(self.store, [SWEEP])

    def _over(self, found: Sequence[Row]) -> bool:
        return not self.cloud.left() and all(row.state in ENDED for row in found)

    def _tell(self, found: Sequence[Row]) -> None:
        for row in found:
            if self.said.get(row.id, QUEUED) != row.state:
                self.said[row.id] = row.state
                print(f"{row.name} ({output.params_text(row)}): {row.state}", flush=True)

    def _accident(self, found: Sequence[Row]) -> None:
        """Take away the VM of a run that is on its way and has saved something."""
        for row in found:
            if row.state == RUNNING and checkpoints.committed(self.store, row.id):
                self._take_away(row)
                return

    def _take_away(self, row: Row) -> None:
        for machine in self.cloud.machines():
            if machine.status == "RUNNING" and row.id in self.cloud.serial(machine.name):
                self.victim, self.machine, self.number = row.id, machine.name, str(machine.body["id"])
                print(f">>> Google takes {machine.name} away, in the middle of {row.name}", flush=True)
                self.cloud.preempt(machine.name)
                return

    def _aftermath(self, found: Sequence[Row]) -> None:
        there = {machine.name: str(machine.body["id"]) for machine in self.cloud.machines()}
        if not self.back and there.get(self.machine, self.number) != self.number:
            self.back = True
            print(f">>> its group makes {self.machine} again", flush=True)
        row = next(row for row in found if row.id == self.victim)
        line = "" if self.went_on else went_on(self.store, row)
        if line:
            self.went_on = True
            print(f">>> {row.name}: attempt {row.attempt} {line}", flush=True)
