"""Execution of an attempt on this machine, in the order things happen.

make ready (`preparation.py`) → start and watch (`running_process.py`) → end (`ending.py`). Everything it
writes to the store is under its own attempt number or guarded by the run's log, so that a worker frozen
anywhere in here does no harm when it goes on. Whatever breaks in here, the process is ended and the run given
back: a claim is never held by a worker that does nothing for it.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

from hostler.attempt.status import AttemptStatus
from hostler.errors import Fenced, HostlerError, StoreError
from hostler.records.run import heartbeats
from hostler.records.run.attempt import Attempt
from hostler.records.sweep.rungs import RungReaders
from hostler.spec.job import Job
from hostler.spec.states import ENDED
from hostler.worker.claim.slots import Placement
from hostler.worker.gang.leader import Leader, NotGathered
from hostler.worker.machine import Machine
from hostler.worker.run.ending import Ending
from hostler.worker.run.exit import Exit
from hostler.worker.run.failure import Verdict, unready
from hostler.worker.run.kinds import MACHINE, WORKER
from hostler.worker.run.local_attempt import LocalAttempt
from hostler.worker.run.meter import Peak
from hostler.worker.run.preparation import UNREADY, make_ready
from hostler.worker.run.running_process import RunningProcess, Started
from hostler.worker.run.tracker_feed import TrackerFeed
from hostler.worker.run.watch import Watchman
from hostler.worker.shared.process import Missed, SharedProcess

Leads = Callable[[Job, AttemptStatus, Callable[[str], None]], Leader | None]


class Execution:
    """Carries out one attempt, in a thread of its own."""

    def __init__(
        self,
        machine: Machine,
        job: Job,
        attempt: Attempt,
        placement: Placement,
        moved: Callable[[], None] = lambda: None,
        rungs: RungReaders | None = None,
        leads: Leads = lambda *_: None,
        rate: float | None = None,
        shared: SharedProcess | None = None,
    ) -> None:
        """`moved` is called when its place is free, and when it is over. `leads` makes the leader of a run
        that takes several processes. `rate`: the price of its part of the machine for an hour. `shared`: the
        process that it shares with other runs."""
        self._local = local = LocalAttempt(machine, job, attempt, placement, rate, shared=shared is not None)
        self.attempt, self.placement, self.job = attempt, placement, local.job
        self.timed = local.job.budget.hours is not None  # its sweep may take only so many hours
        self._moved, self._shared = moved, shared
        self._leader = leads(local.job, local.status, local.uploader.note)
        self._ending = Ending(local, self._leader)
        self._trackers = TrackerFeed(local)
        readers = rungs or RungReaders(machine.store, machine.say)
        self._running = RunningProcess(local, self._trackers, readers, self._leader, shared)
        self._left = ""  # why it was left to another attempt
        self.vacant = False  # its process is gone: its place is free, though it has not concluded
        self.refused = False  # this machine won't do, and others may
        self.rejection: dict[str, Any] = {}  # the reason a shared process rejected this run
        self._over = False
        self._thread = threading.Thread(target=self._run, name=attempt.key.run, daemon=True)

    @property
    def outcome(self) -> str:
        return self._left or self._ending.outcome

    @property
    def cost(self) -> float:
        """Cost of this attempt, where a price is known."""
        return self._local.cost.amount

    @property
    def regroups(self) -> bool:
        """Whether the process that it shared is gone: it is given back in a moment, or over."""
        return self._shared is not None and not self._over and self._shared.over

    @property
    def peak(self) -> Peak | None:
        """The most that it has used, where its sweep is measured."""
        return self._local.peak

    @property
    def stopping(self) -> bool:
        return self._local.status.stop is not None

    @property
    def kind(self) -> str:
        """The kind of its end; '' until then."""
        return self._ending.kind

    def charge(self, rate: float | None) -> None:
        """Its part of the machine costs so much an hour from now on."""
        self._local.cost.change(rate)

    def note(self, line: str) -> None:
        """A line for the run's log."""
        self._local.uploader.note(line)

    def facts(self) -> dict[str, Any]:
        """For the heartbeat: how far it is."""
        facts = self._local.delivery.facts()
        facts |= {"together": n} if (n := self._local.ran.get("together")) else {}
        cost = self._ending.price(self._local.cost.seconds)
        return facts | self._trackers.facts() | ({} if cost is None else {"cost": cost})

    def stop(self, reason: str) -> None:
        """A stop request, from wherever: the first one's reason holds."""
        self._local.status.ask(reason)

    def fence(self) -> None:
        self._local.status.fenced = True

    def start(self) -> None:
        self._thread.start()

    def is_alive(self) -> bool:
        return not self._over

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        with self._local.machine.gate.counted() if self._shared else nullcontext():
            self._carry_out_to_the_end()

    def _carry_out_to_the_end(self) -> None:
        try:
            self._carry_out_or_give_back()
            with self._local.through_gate():
                _pack(self._local)
            self._show_the_end()
        except Fenced:
            gave_up = self._local.status.gave_up
            self._left = "left to another attempt" if gave_up else "taken over by another attempt"
        finally:
            try:
                self._running.close()
                with self._local.through_gate():
                    self._close()
            finally:
                self._local.cost.stop()
                self._over = True
                self._moved()

    def _carry_out_or_give_back(self) -> None:
        try:
            self._carry_out()
        except Fenced:
            raise
        except Exception as error:  # a bug, or this machine's trouble: the run must not stay claimed
            self._running.close()
            message = "".join(traceback.format_exception_only(type(error), error)).strip()
            verdict = Verdict(WORKER, message, traceback.format_exc(), f"worker:{type(error).__name__}")
            self._ending.conclude(verdict)

    def _carry_out(self) -> None:
        local, running = self._local, self._running
        try:
            with local.through_gate():
                prepared = local.status.deliver(lambda: make_ready(local, self._ending))
            if prepared is None or not self._gather():
                return
            started = running.start(prepared)
        except UNREADY as error:
            self._not_ready(unready(error, local.uploader.hide))
            return
        except Missed:
            self._ending.give_back("late")
            return
        if local.job.trackers:
            self._trackers.show(local.job.trackers)
        exit, watchman = running.watch(started)
        running.close()  # which may wait for a thread that waits at the gate
        with local.through_gate():
            self._conclude(started, exit, watchman)

    def _conclude(self, started: Started, exit: Exit, watchman: Watchman) -> None:
        """Its process is over, or it has left that."""
        local, running, trackers = self._local, self._running, self._trackers
        if exit.code == 0:  # what went wrong may be told before another one is tried
            self._vacate()
        local.status.check()
        local.ran |= trackers.facts()
        trackers.announce()
        running.record(started)
        if rejection := started.rejection:
            self.rejection = rejection
            self._ending.sent_back(str(rejection.get("why", "")))
            return
        self._ending.after(exit, watchman)

    def _gather(self) -> bool:
        """Gather the workers that train this run together; False if it was given back."""
        if self._leader is None:
            return True
        restored = self._local.delivery.restored
        try:
            self._leader.form(restored.place.name if restored else None)
        except NotGathered as error:
            if error.verdict is None:
                self._ending.give_back(error.why)
            else:
                self._ending.conclude(error.verdict)
            return False
        return True

    def _not_ready(self, verdict: Verdict) -> None:
        """It never came to start. Where only this machine is to blame, another one gets it."""
        local = self._local
        if verdict.traceback:
            local.uploader.note(f"it printed:\n{verdict.traceback}")
        machine_only = verdict.kind == MACHINE and local.status.stop is None
        if machine_only and local.status.deliver(lambda: _has_others(local.machine)):
            self.refused = True
            self._ending.decline(verdict)
        else:
            self._ending.conclude(verdict)

    def _vacate(self) -> None:
        self.vacant = True
        self._moved()

    def _show_the_end(self) -> None:
        """Tracking tools get the rest, once the run has ended for everybody else and its place is free. Of a
        run that is tried again at once they get it from the next attempt: two that deliver to one server at
        the same time would each bring what the other has."""
        machine, going = self._local.machine, self._local.is_going
        if not self._trackers.begun or (self._ending.again and not going):
            return
        self._vacate()
        closing = self._ending.closing(machine.wall())
        self._trackers.close(closing, machine.timing.grace / 2 if going else machine.timing.tracker)
        try:
            self._local.uploader.flush()  # what was said of them
        except StoreError as error:
            machine.say(f"{self._local.run}: {error}")

    def _close(self) -> None:
        """End everything that belongs to this attempt alone, and have its folder removed."""
        self._trackers.abandon()
        if self._leader:
            self._leader.close()
        folder = self._local.folder.folder
        if self._shared:
            self._shared.quit(self._local.run, folder)
        elif self._leader or self._trackers.begun or not (self._ended and self._local.keep_folder()):
            self._local.machine.remover.remove_soon(folder)

    @property
    def _ended(self) -> bool:
        """Whether the run's end is in the store: nobody looks into its folder any more."""
        return self.outcome in ENDED


def _has_others(machine: Machine) -> bool:
    """Whether another worker is alive."""
    ages = heartbeats.ages(machine.store)
    return any(session != machine.session and age < machine.timing.lease for session, age in ages.items())


def _pack(local: LocalAttempt) -> None:
    """Put an ended run into a segment, with others, and into the archive if it is good enough: copies,
    without which a run is as good. Its own points become one object."""
    machine = local.machine
    try:
        machine.compactor.take(machine.store, local.attempt, local.params, local.metric_writer)
        machine.archivist.take(machine.store, local.attempt, machine.clock(), machine.say)
        if not local.is_going:
            local.metric_writer.pack()
    except HostlerError as error:
        machine.say(f"{local.run}: {error}")
