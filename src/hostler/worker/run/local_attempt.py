"""An attempt as this machine holds it: its job, its local folder, and its way to the store.

The steps of an execution (preparation, running process, ending) share one of these.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

from hostler.attempt.delivery import Delivery
from hostler.attempt.status import AttemptStatus
from hostler.attempt.uploader import Mask, ProcessOutput, Uploader
from hostler.records.run.attempt import Attempt
from hostler.records.run.handoff import Handoff
from hostler.records.series.logs import LogWriter
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.picker import Picker
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.worker.claim.measures import is_measured
from hostler.worker.claim.slots import Placement
from hostler.worker.machine import Machine
from hostler.worker.prepare import secrets
from hostler.worker.prepare.inputs import Inputs
from hostler.worker.prepare.mask import Masker
from hostler.worker.prepare.prepare import dependence
from hostler.worker.run import conclude, run_folders
from hostler.worker.run.meter import Peak
from hostler.worker.run.reused_folders import KeptFolder


class LocalAttempt:
    def __init__(
        self,
        machine: Machine,
        job: Job,
        attempt: Attempt,
        placement: Placement,
        rate: float | None = None,
        *,
        shared: bool = False,
    ) -> None:
        """`rate`: the price of its part of the machine for an hour. `shared`: others are in its process."""
        self.machine, self.attempt, self.placement = machine, attempt, placement
        self.run, self.state = attempt.key.run, attempt.state
        command, own = job.command_of(attempt.key.index), sweeps.with_source(job, self.state)
        self.job = own if command == own.command else replace(own, command=command)
        self.params = job.params(attempt.key.index)  # as the sweep's file has them
        self.inputs = Inputs(self.params)  # with paths on this machine, once they are here
        self.learned: frozenset[str] = frozenset()  # keys whose form the sweep learned from a usage error
        place = run_folders.of_run(machine.cache, machine.session, self.run, attempt.number)
        self.folder = Handoff(place, job.neighbours)
        self.kept: KeptFolder | None = None  # what its folder was, if that is of a run before it
        self.code: Path | None = None  # the code that its working folder is a copy of, once it is
        self.gone = False  # its process has ended, and nothing is left of it
        self.cost = AttemptCost(rate, machine.clock)
        self.metric_writer = MetricWriter(machine.store, self.run, attempt.number)
        log_writer = LogWriter(machine.store, self.run, attempt.number)
        self.uploader = uploader(machine, self.job, self.folder, self.metric_writer, log_writer)
        self._shared = shared
        rest = machine.gate.rest if shared else time.sleep
        self.status = AttemptStatus(
            attempt, machine.timing, machine.clock, machine.say, conclude.GOING, rest=rest
        )
        self.delivery = Delivery(
            machine.store,
            attempt,
            self.folder,
            self.uploader,
            self.status,
            self.state,
            self.job.outputs,
            self.job.looked_at,
            bundled=shared,
        )
        whole = placement.share == 1.0
        self.peak = Peak(machine.clock, whole=whole) if is_measured(job) else None  # `parallel: auto`
        self.gpu: dict[str, float] = {}  # its GPU and the use of it, once its process is over
        self.ran: dict[str, Any] = {}  # for the entry that closes the attempt: machine, use, sharers

    def make_folder(self) -> None:
        """Make its folder, or take that of a run that has left nothing in it. May be repeated."""
        if self.kept is None and not self.folder.folder.exists():
            self.kept = self.machine.reused.take(dependence(self.job), self.folder.folder)
        self.folder.make(self.inputs.params, again=self.kept is not None)

    def keep_folder(self) -> bool:
        """Leave its folder to a later run; False if that must not have it."""
        if not self.gone or self.code is None or self.job.neighbours:
            return False
        return self.machine.reused.keep(dependence(self.job), self.code, self.folder)

    @property
    def launch(self) -> str:
        """fleet/number of the launch that its worker is a part of; '' for none."""
        return str((self.attempt.state.claim or {}).get("fleet") or "")

    def through_gate(self) -> AbstractContextManager[None]:
        """For work on it in this worker, where a hundred may want to work at once."""
        return self.machine.gate.passed(lambda: self.status.hurried) if self._shared else nullcontext()

    @property
    def is_going(self) -> bool:
        """Whether this worker was told to go: there is no time to lose."""
        return self.status.stop in conclude.GOING


class AttemptCost:
    """Cost of a worker's part in an attempt, from now until it is stopped."""

    def __init__(self, rate: float | None, clock: Callable[[], float]) -> None:
        """`rate`: price of an hour, where it is known."""
        self.rate, self._clock, self._began = rate, clock, clock()
        self._ended: float | None = None
        self._before, self._since = 0.0, self._began  # money until the rate changed, and when that was
        self._started: float | None = None  # seconds until the process was there
        self._exited: float | None = None

    @property
    def seconds(self) -> float:
        return (self._clock() if self._ended is None else self._ended) - self._began

    @property
    def amount(self) -> float:
        return self._before + (self.rate or 0.0) * (self._began + self.seconds - self._since) / 3600

    def change(self, rate: float | None) -> None:
        """Another part of the machine is its from now on."""
        if rate != self.rate and self._ended is None:
            self._before, self._since, self.rate = self.amount, self._clock(), rate

    def started(self) -> None:
        """The process is there: what was before was preparation."""
        self._started = self.seconds

    def exited(self) -> None:
        """The process is over: what follows is saving."""
        self._exited = self.seconds

    def phases(self) -> dict[str, float]:
        """Seconds of preparation, of the process and of saving after it."""
        whole = self.seconds
        started = whole if self._started is None else self._started
        exited = whole if self._exited is None else self._exited
        found = {"prepare": started, "train": exited - started, "save": whole - exited}
        return {name: round(max(0.0, lasted), 3) for name, lasted in found.items()}

    def stop(self) -> None:
        self._ended = self._clock()


def uploader(
    machine: Machine,
    job: Job,
    folder: Handoff,
    metric_writer: MetricWriter,
    log_writer: LogWriter,
    mask: Mask | None = None,
    known: Sequence[Point] = (),
    wall: Callable[[], float] | None = None,
) -> Uploader:
    """The uploader of what a process of this job prints and logs, secrets hidden. `known`: points of the
    attempt that the store has already."""
    output = ProcessOutput(folder.log, log_writer, Picker(job.metrics), mask or masker(job, folder))
    return Uploader(
        folder.metrics,
        metric_writer,
        machine.timing,
        machine.clock,
        wall or machine.wall,
        machine.interest,
        output,
        known,
    )


def masker(job: Job, folder: Handoff) -> Masker:
    """Hides the secrets of a job in what a process of it prints in this folder."""
    return Masker(secrets.hidden(job), {str(folder.work), os.path.realpath(folder.work)})
