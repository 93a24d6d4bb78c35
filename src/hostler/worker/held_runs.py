"""Runs that this worker holds: begun, measured, stopped at deadlines, and let go of once they are over.

Each is carried out by a thread of its own. The thread that looks for work calls the methods here.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from hostler.attempt.status import AttemptStatus
from hostler.errors import HostlerError, StoreError
from hostler.frozen import dataclass
from hostler.records.run.log import CAP
from hostler.records.sweep import deadline, failures, sweeps
from hostler.records.sweep.queue import OpenRun
from hostler.records.sweep.rungs import RungReaders
from hostler.spec.job import Job
from hostler.spec.states import ENDED
from hostler.worker.claim.claimer import Taken
from hostler.worker.claim.finder import Finder
from hostler.worker.claim.room import Room, share
from hostler.worker.claim.slots import Placement
from hostler.worker.gang.leader import Leader
from hostler.worker.gang.member import Member
from hostler.worker.gang.rendezvous import Joined
from hostler.worker.growth import Growth
from hostler.worker.machine import Machine
from hostler.worker.prepare import packages
from hostler.worker.pulse import Pulse
from hostler.worker.run import run_folders
from hostler.worker.run.conclude import CROWDED, LEAVING
from hostler.worker.run.execution import Execution
from hostler.worker.run.kinds import CUDA_MEMORY
from hostler.worker.shared.kept import KeptProcesses, Kind, kind_of
from hostler.worker.shared.process import SharedProcess, SharingLimits
from hostler.worker.sweep_finisher import OwnSweeps

if TYPE_CHECKING:
    from hostler.worker.loop import WorkerTerms

REGROUP = 10.0  # seconds for which a run that others shared a process with waits for them


@dataclass(frozen=True)
class Reaped:
    """The runs that a look found over, and whether a place became free."""

    over: int
    freed: bool


class HeldRuns:
    def __init__(
        self,
        machine: Machine,
        room: Room,
        terms: WorkerTerms,
        finder: Finder,
        pulse: Pulse,
        growth: Growth,
        rungs: RungReaders,
        wake: Callable[[], None],
    ) -> None:
        self._m, self._room, self._terms, self._finder = machine, room, terms, finder
        self._pulse, self._growth, self._rungs, self._wake = pulse, growth, rungs, wake
        self.running: list[Execution | Member] = []
        self.told: str | None = None  # reason for which all of them were told to stop
        self.refused = False  # this machine won't do for a run that others may do
        self.ended = 0  # here, retries included
        self.own_sweeps = OwnSweeps(machine)
        self._gave_back: set[Execution | Member] = set()  # of these, the ones whose place another may have
        self._used = 0.0  # money, by attempts that are over
        self._sharing = SharingLimits()
        self._kept = KeptProcesses(
            run_folders.of_session(machine.cache, machine.session), machine.start, packages.stamped
        )
        self._unsaid: dict[str, str] = {}  # by sweep: a line for the log of its next run
        self._timed = -math.inf  # when deadlines were last looked at

    def stop(self, reason: str) -> None:
        """Stop all of them, saving each. Safe in a signal handler."""
        self.told = self.told or reason
        for execution in list(self.running):
            execution.stop(self.told)

    @property
    def concluding(self) -> int:
        """How many have given their place back while their end is being written."""
        return len(self._gave_back)

    @property
    def spent(self) -> bool:
        """Whether the worker takes no more: it has had its number of runs, or its machine won't do."""
        left = self._left()
        return self.refused or (left is not None and left <= 0)

    @property
    def used(self) -> float:
        """Cost of the runs carried out here so far."""
        return self._used + sum(execution.cost for execution in list(self.running))

    def begin(self, taken: Taken, placement: Placement) -> None:
        """Start a run, and those that share its process and so its place."""
        self._room.take(placement, taken.job)
        key = taken.attempt.key
        most = self._sharing.limit(taken.job, key.index, key.run, taken.attempt.state)
        kind = kind_of(taken.job, key.index, placement) if most > 1 else None
        self._end_kept(but=kind)
        if most < 2:
            self._start(taken, placement, self._rate_of(placement))
            return
        members = [taken, *self._mates(taken)]
        runs = [member.attempt.key.run for member in members]
        folder = run_folders.of_run(self._m.cache, self._m.session, f"shared-{key.run}", taken.attempt.number)
        shared = SharedProcess(
            runs,
            folder,
            partial(self._kept.begin, kind),
            self._m.remover.remove_soon,
            most,
            let_go=self._kept.keep,
        )
        rate = self._rate_of(placement)
        for one in members:
            self._start(one, placement, rate and rate / len(members), shared)

    def nothing_begins(self) -> None:
        """Nothing is there for processes that wait for other runs."""
        self._end_kept()

    def _end_kept(self, but: Kind | None = None) -> None:
        """End the processes that wait, but those of this kind."""
        self._kept.end(but)
        self._room.lend(self._kept.devices)

    def _mates(self, taken: Taken) -> list[Taken]:
        def limit(job: Job, run: OpenRun) -> int:
            left = self._left()
            most = self._sharing.limit(job, run.key.index, run.key.run, run.state)
            return most if left is None else min(most, left)

        if taken.attempt.state.attempts > 1:
            self._regroup(taken.job.name)
        mine = [*(one.attempt.key.run for one in self.running), taken.attempt.key.run]
        try:
            return self._finder.mates.claim(taken, limit, mine)
        except StoreError as error:
            self._m.say(str(error))
            return []

    def _regroup(self, sweep: str) -> None:
        """Wait for runs whose shared process is gone: given back one by one, they go on together again."""
        until = self._m.clock() + REGROUP
        ours = [one for one in self.running if isinstance(one, Execution) and one.attempt.key.sweep == sweep]
        while any(execution.regroups for execution in ours) and self._m.clock() < until and self.told is None:
            time.sleep(self._m.timing.poll / 4)

    def _start(
        self, taken: Taken, placement: Placement, rate: float | None, shared: SharedProcess | None = None
    ) -> None:
        execution = Execution(
            self._m,
            taken.job,
            taken.attempt,
            placement,
            self._wake,
            self._rungs,
            lambda job, status, say: self._leader(job, taken, status, say),
            rate=rate,
            shared=shared,
        )
        if line := self._unsaid.pop(taken.job.name, ""):
            execution.note(line)
        self._m.say(f"{execution.attempt.key.run}: attempt {taken.attempt.state.attempts} starts")
        self._hold(execution)

    def join(self, joined: Joined, placement: Placement) -> None:
        """Join the gang of a run."""
        self._room.take(placement, joined.job)
        self._m.say(f"{joined.key.run}: joins as number {joined.slot}")
        self._hold(Member(self._m, joined, placement, self._wake, self._rate_of(placement)))

    def _rate_of(self, placement: Placement) -> float | None:
        """Price of this part of the machine for an hour, where it is known."""
        return None if self._m.price is None else self._m.price * share(self._room.offer, placement)

    def _leader(
        self, job: Job, taken: Taken, status: AttemptStatus, say: Callable[[str], None]
    ) -> Leader | None:
        """The leader of a run that takes several processes, here or with other workers."""
        if job.resources.nodes * job.resources.procs_per_node < 2:
            return None
        fits = self._room.can_ever
        return Leader(self._m, job, taken.attempt, status, say, only=self._terms.only, fits=fits)

    def _hold(self, execution: Execution | Member) -> None:
        self._pulse.hold(execution)
        self.running.append(execution)
        execution.start()
        self._terms.took(execution.attempt.key.run)

    def _measured(self) -> list[Execution]:
        return [one for one in self.running if isinstance(one, Execution) and one.peak]

    def measure(self) -> None:
        """Heed what runs of sweeps with `parallel: auto` use; one of them goes where memory runs out."""
        runs = self._measured()
        lines = self._room.measure((run.job, run.placement, run.peak) for run in runs if run.peak)
        for line in lines:
            self._chosen(line)
        for execution in runs if lines else ():
            execution.charge(self._rate_of(self._room.held(execution.placement, execution.job)))
        going = any(run.stopping for run in runs)
        if len(runs) > 1 and not going and self._room.crowded:
            self._m.say(f"{runs[-1].attempt.key.run}: is stopped, as this machine is nearly out of memory")
            runs[-1].stop(CROWDED)

    def _chosen(self, line: str) -> None:
        self._m.say(line)
        self._unsaid[line.partition(":")[0]] = line

    def reap(self) -> Reaped:
        """Let go of runs that are over, and of places that they need no longer."""
        over, freed = 0, False
        if self.spent or self.told:
            self._end_kept()
        for execution in list(self.running):
            dead = not execution.is_alive()  # asked once: it may end at any moment
            if (dead or execution.vacant) and execution not in self._gave_back:
                self._gave_back.add(execution)
                if not any(self._shares(one, execution) for one in self.running):
                    self._room.lend(self._kept.devices)  # its process may wait for others
                    self._room.give_back(execution.placement)
                    freed = True
            if dead:
                freed |= not any(self._shares(one, execution) for one in self.running)
                over += 1
                self._bury(execution)
        return Reaped(over, freed)

    def _shares(self, one: Execution | Member, other: Execution | Member) -> bool:
        """Whether this one still needs the other's place."""
        return one is not other and one.placement is other.placement and one not in self._gave_back

    def _bury(self, execution: Execution | Member) -> None:
        self.measure()  # its last peak
        self.own_sweeps.had(execution.attempt.key.sweep)
        self.running.remove(execution)
        self._gave_back.remove(execution)
        self._pulse.drop(execution)
        self._m.say(f"{execution.attempt.key.run}: {execution.outcome or 'the worker failed; see its log'}")
        self._used += execution.cost
        if execution.outcome in ENDED:
            self._growth.ended(execution.attempt.key.sweep)
        self.ended += execution.outcome in (*ENDED, "")  # "": broken here, and counted so as not to go on
        self.refused = self.refused or execution.refused
        if isinstance(execution, Execution) and execution.rejection:
            key = execution.attempt.key
            self._sharing.heed(execution.job, key.index, key.run, execution.rejection)
        if isinstance(execution, Execution) and (line := self._room.strain(execution.job, execution.kind)):
            self._chosen(line)
        if isinstance(execution, Execution) and execution.kind == CUDA_MEMORY:
            self._finder.forget()  # its sweep may have outgrown this machine
            self._growth.outgrew(execution.attempt.key.run, execution.attempt.state.outgrew)
        if execution.outcome == "failed" and isinstance(execution, Execution):
            self._halt_if_repeated(execution.attempt.key.sweep)

    def keep_deadlines(self) -> None:
        """Save and set aside the runs here of a sweep whose hours are used up."""
        timed = {e.attempt.key.sweep for e in self.running if e.timed}
        if not timed or self._m.clock() - self._timed < self._m.timing.beat:
            return
        self._timed = self._m.clock()
        try:
            store = self._m.store
            over = {n for n in timed if deadline.is_over(store, sweeps.load_spec(store, n)[0])}
        except HostlerError as error:  # the store does not answer, or the sweep is being deleted
            self._m.say(str(error))
            return
        for execution in self.running:
            if execution.attempt.key.sweep in over:
                execution.stop(CAP)

    def _halt_if_repeated(self, sweep: str) -> None:
        try:
            if failures.halt_if_repeated(self._m.store, sweep):
                self._finder.forget()
                self._m.say(f"{sweep}: halted; hostler errors {sweep}")
        except StoreError as error:
            self._m.say(f"{sweep}: {error}")  # the next failure looks again

    def drain(self) -> None:
        """Stop what is left, and wait for it."""
        for execution in self.running:
            execution.stop(self.told or LEAVING)
        for execution in self.running:
            self.own_sweeps.had(execution.attempt.key.sweep)
            execution.join()
            self._m.say(f"{execution.attempt.key.run}: {execution.outcome}")
        self._kept.close()

    def _left(self) -> int | None:
        """How many runs it may still take; None: any number."""
        return None if self._terms.runs is None else self._terms.runs - self.ended - len(self.running)
