"""Execution of an attempt on this machine, in the order things happen.

restore → prepare → spawn → watch → end (`ending.py`). Everything it writes to the store is under its own
attempt number or guarded by the run's log, so that a worker frozen anywhere in here does no harm when it
goes on. Whatever breaks in here, the process is ended and the run given back: a claim is never held by a
worker that does nothing for it. A run that is over within a moment costs no thread and no object but its
log: who looks after a process, and what it ran on, is for those that last.
"""

from __future__ import annotations

import os
import threading
import traceback
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hostler.attempt.delivery import Delivery
from hostler.attempt.saver import Saver
from hostler.attempt.status import AttemptStatus
from hostler.attempt.uploader import Output, Uploader
from hostler.errors import (
    DamagedError,
    Fenced,
    HostlerError,
    MachineError,
    MissingError,
    NewerFormatError,
    PrepareError,
    StoreError,
    UsageError,
)
from hostler.records.run import heartbeats, surroundings
from hostler.records.run.attempt import Attempt
from hostler.records.run.handoff import Handoff
from hostler.records.series import metrics
from hostler.records.series.logs import LogWriter
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.records.sweep.rungs import RungReaders
from hostler.search.pruners import pruner
from hostler.spec import pruning
from hostler.spec.inputs import INIT
from hostler.spec.job import Job, source_facts
from hostler.spec.tracking import Tracking
from hostler.store import NotFound
from hostler.trackers import feed
from hostler.trackers.feeds import Subject
from hostler.worker.claim.slots import Placement
from hostler.worker.gang.leader import Leader, NotGathered
from hostler.worker.machine import Machine
from hostler.worker.prepare import inputs, secrets
from hostler.worker.prepare.inputs import Inputs
from hostler.worker.prepare.mask import Masker
from hostler.worker.prepare.prepare import Prepared, prepare
from hostler.worker.process.launching import launched
from hostler.worker.process.process import Exit, Process
from hostler.worker.run import conclude, leftovers, run_folders
from hostler.worker.run.ending import Ending, Showing
from hostler.worker.run.failure import Verdict, unready
from hostler.worker.run.invocation import invocation
from hostler.worker.run.kinds import MACHINE, NOT_FINISHED, WORKER
from hostler.worker.run.meter import Meter
from hostler.worker.run.picker import Picker
from hostler.worker.run.rung_watch import RungWatch
from hostler.worker.run.surroundings import Command
from hostler.worker.run.watch import Watchman
from hostler.worker.shared.process import Band, Missed
from hostler.worker.shared.slot import Seat

# What making a run ready may end in; the rest is a bug, or the store's.
UNREADY = (
    PrepareError,
    MachineError,
    MissingError,
    DamagedError,
    NewerFormatError,
    UsageError,
    NotFound,
    OSError,
)


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
        leads: Callable[[Job, AttemptStatus, Callable[[str], None]], Leader | None] = lambda *_: None,
        rate: float | None = None,
        band: Band | None = None,
    ) -> None:
        """`moved` is called when its place is free, and when it is over. `leads` makes the leader of a run
        that takes several processes. `rate`: what its part of the machine costs an hour. `band`: the runs
        that it shares a process with."""
        self._band = band
        self._m, self.attempt, self.placement, self._moved = machine, attempt, placement, moved
        self._thread = threading.Thread(target=self._run, name=attempt.key.run, daemon=True)
        self._state = attempt.state
        command = job.command_of(attempt.key.index)
        self._job = replace(sweeps.with_source(job, self._state), command=command)
        self._asked = job.params(attempt.key.index)  # as the sweep's file has them
        self._params = self._asked
        self._inputs = Inputs(self._asked)
        self._folder = Handoff(
            run_folders.of_run(machine.cache, machine.session, attempt.key.run, attempt.number)
        )
        self._exited = threading.Event()  # the process, or all hope of one
        self._started = machine.clock()
        self._metric_writer = MetricWriter(machine.store, attempt.key.run, attempt.number)
        self._uploader = self._make_uploader()
        self._status = AttemptStatus(attempt, machine.timing, machine.clock, machine.say, conclude.GOING)
        self._delivery = Delivery(
            machine.store,
            attempt,
            self._folder,
            self._uploader,
            self._status,
            self._state,
            self._job.outputs,
        )
        self._ending = Ending(machine, self._job, self._delivery, rate)
        self._leader = leader = leads(self._job, self._status, self._uploader.note)
        if leader:
            self._ending.judge, self._ending.others = leader.judge, lambda: leader.cost
        self._process: Process | None = None
        self._watchman: Watchman | None = None
        self._left = ""
        self.vacant = False  # its process is gone: its place is free, though it has not concluded
        self._over = False
        self._rungs = self._make_rungs(rungs or RungReaders(machine.store, machine.say))
        self.refused = False  # this machine won't do, and others may
        self.sent_back: dict[str, Any] = {}  # what a process said that would not have it among others
        self._rate = rate
        self._cost: float | None = None  # once it is over
        self._showing = Showing(self._folder, self._uploader, self._about)

    @property
    def outcome(self) -> str:
        return self._left or self._ending.outcome

    @property
    def cost(self) -> float:
        """Cost of this attempt, where a price is known."""
        if self._cost is not None:
            return self._cost
        return (self._rate or 0.0) * (self._m.clock() - self._started) / 3600

    def stop(self, reason: str) -> None:
        """A stop request, from wherever: the first one's reason holds."""
        self._status.ask(reason)

    def fence(self) -> None:
        self._status.fenced = True

    def facts(self) -> dict[str, Any]:
        """For the heartbeat: how far it is."""
        told = self._delivery.facts()
        told |= {"together": n} if (n := self._ending.ran.get("together")) else {}
        cost = self._ending.price(self._m.clock() - self._started)
        return told | self._showing.facts() | ({} if cost is None else {"cost": cost})

    @property
    def job(self) -> Job:
        return self._job

    @property
    def regroups(self) -> bool:
        """Whether the process that it shared is gone: it is given back in a moment, or over."""
        return self._band is not None and not self._over and self._band.over

    @property
    def timed(self) -> bool:
        """Whether its sweep may take only so many hours."""
        return self._job.budget.hours is not None

    def start(self) -> None:
        self._thread.start()

    def is_alive(self) -> bool:
        return not self._over

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._carry_out_or_give_back()
            self._pack()
            self._show_the_end()
        except Fenced:
            gave_up = self._status.gave_up
            self._left = "left to another attempt" if gave_up else "taken over by another attempt"
        finally:
            try:
                self._close()
                self._showing.abandon()
                if self._leader:
                    self._leader.close()
                if self._band:
                    self._band.quit(self.attempt.key.run, self._folder.folder)
                else:
                    self._m.broom.sweep(self._folder.folder)
            finally:
                self._cost = self.cost
                self._over = True
                self._moved()

    def _carry_out_or_give_back(self) -> None:
        try:
            self._carry_out()
        except Fenced:
            raise
        except Exception as error:  # a bug, or this machine's trouble: the run must not stay claimed
            self._close()
            said = "".join(traceback.format_exception_only(type(error), error)).strip()
            verdict = Verdict(WORKER, said, traceback.format_exc(), f"worker:{type(error).__name__}")
            saved = self._delivery.saver is not None and self._delivery.saver.commits > 0
            self._ending.conclude(verdict, progress=saved)

    def _pack(self) -> None:
        """Put an ended run into a segment, with others, and into the archive if it is good enough: copies,
        without which a run is as good. Its own points become one object."""
        m = self._m
        try:
            m.compactor.take(m.store, self.attempt, self._asked, self._metric_writer)
            m.archivist.take(m.store, self.attempt, m.clock(), m.say)
            if self._status.stop not in conclude.GOING:  # else there is no time to lose
                self._metric_writer.pack()
        except HostlerError as error:
            self._m.say(f"{self.attempt.key.run}: {error}")

    def _show_the_end(self) -> None:
        """Tracking tools get the rest, once the run has ended for everybody else and its place is free. Of a
        run that is tried again at once they get it from the next attempt: two that deliver to one server at
        the same time would each bring what the other has."""
        going = self._status.stop in conclude.GOING
        if not self._showing.begun or (self._ending.again and not going):
            return
        self.vacant = True
        self._moved()
        closing = self._ending.closing(self._m.wall())
        self._showing.close(closing, self._m.timing.grace / 2 if going else self._m.timing.tracker)
        try:
            self._uploader.flush()  # what was said of them
        except StoreError as error:
            self._m.say(f"{self.attempt.key.run}: {error}")

    def _close(self) -> None:
        """End every process and thread of this attempt; may be repeated."""
        if self._process:
            self._process.close()
            leftovers.forget(self._m.session, self.attempt.key.run)
            self._process = None
        self._exited.set()
        if self._rungs:
            self._rungs.close()
        if self._watchman:
            self._watchman.stop()
        if self._delivery.saver:
            self._delivery.saver.stop()

    def _go(self) -> bool:
        """Gather those who train with us; False if it was given back."""
        if self._leader is None:
            return True
        restored = self._delivery.restored
        try:
            self._leader.form(restored.place.name if restored else None)
        except NotGathered as error:
            if error.verdict is None:
                self._ending.give_back(error.why)
            else:
                self._ending.conclude(error.verdict)
            return False
        return True

    def _carry_out(self) -> None:
        deliver = self._status.deliver
        try:
            prepared = deliver(self._prepare)
            if prepared is None or not self._go():
                return
            # Before the process: what that writes is new.
            saver = self._delivery.saver = self._make_saver()
            process, command = self._spawn(prepared)
        except UNREADY as error:
            self._not_ready(unready(error, self._uploader.hide))
            return
        except Missed:
            self._ending.give_back("late")
            return
        if self._job.trackers:
            self._showing.show(self._job.trackers)
        watchman = self._watchman = self._make_watchman(process, saver)
        if self._rungs:
            self._rungs.start()
        lasts = process.wait(self._m.timing.poll) is None
        recorded = lasts and self._look_after(watchman, saver, command)
        exit = self._watch(process, watchman)
        self._close()
        if exit.code == 0:  # what went wrong may be told before another one is tried
            self.vacant = True
            self._moved()
        self._status.check()
        self._ending.ran |= self._showing.facts()
        self._showing.announce()
        if not recorded:
            self._ending.ran |= {surroundings.RAN: deliver(lambda: self._ran(command))}
        if isinstance(process, Seat) and (said := process.sent_back):
            self.sent_back = said
            self._ending.sent_back(str(said.get("why", "")))
            return
        self._ending.after(exit, watchman, saver)

    def _prepare(self) -> Prepared | None:
        """The checkpoint to go on from; code, packages, data. None: there is nothing left to start."""
        self._take_inputs()
        self._folder.make(self._params)
        self._restore()
        restored = self._delivery.restored
        if restored and restored.finished:
            self._ending.had_finished(restored)
            return None
        m = self._m
        note, folder = self._uploader.note, self._folder.folder
        prepared = prepare(self._job, m.store, m.cache, folder, note, m.preparations)
        if self._inputs.init:
            os.symlink(self._inputs.init, prepared.data / INIT)
        self._status.check()
        if self._status.stop:
            self._ending.conclude(Verdict(NOT_FINISHED, f"stopped: {self._status.stop}"))
            return None
        return prepared

    def _take_inputs(self) -> None:
        run, store, cache = self.attempt.key.run, self._m.store, self._m.cache
        self._inputs = inputs.bring(self._asked, self._job.init, run, store, cache, self._uploader.note)
        self._params = self._inputs.params

    def _restore(self) -> None:
        found = self._delivery.restore(self._uploader.note)
        if found and not found.finished:
            self._uploader.note(f"goes on from checkpoint {found.place.name}")

    def _not_ready(self, verdict: Verdict) -> None:
        """It never came to start. Where only this machine is to blame, another one gets it."""
        if verdict.traceback:
            self._uploader.note(f"it printed:\n{verdict.traceback}")
        others = verdict.kind == MACHINE and self._status.stop is None
        if others and self._status.deliver(self._others):
            self.refused = True
            self._ending.decline(verdict)
        else:
            self._ending.conclude(verdict)

    def _others(self) -> bool:
        """Whether another worker is alive."""
        ages = heartbeats.ages(self._m.store)
        return any(s != self._m.session and age < self._m.timing.lease for s, age in ages.items())

    def _make_uploader(self) -> Uploader:
        m, writer = self._m, LogWriter(self._m.store, self.attempt.key.run, self.attempt.number)
        output = Output(
            self._folder.log, writer, Picker(self._job.metrics), Masker(secrets.hidden(self._job))
        )
        return Uploader(
            self._folder.metrics, self._metric_writer, m.timing, m.clock, m.wall, m.interest, output
        )

    def _make_rungs(self, readers: RungReaders) -> RungWatch | None:
        """The watch that has the run judged while it runs; None without one, or if a person let it go on."""
        chosen, looked_at = pruning.parse(self._job.prune or None), self._job.looked_at
        if chosen is None or not looked_at or self._state.freed:
            return None
        key = self.attempt.key
        watch = RungWatch(
            self._m.store,
            key,
            self.attempt.number,
            pruner(chosen),
            looked_at[0],
            readers.of(key.sweep, self._job.searched_from),
            until=self._state.until,
            earlier=self._earlier,
            save=self._save_soon,
            stop=self.stop,
            say=self._uploader.note,
        )
        self._uploader.observer = watch.take
        return watch

    def _save_soon(self) -> None:
        """Give the saver a chance before the process is stopped: one that does not know of hostler is cut off
        wherever it is. Not if it writes so often that its folder never comes to rest, and no longer than what
        might be lost is worth."""
        if self._delivery.saver is None or self._folder.joined.exists():
            return
        timing, begun = self._m.timing, self._m.clock()
        longest = min(timing.grace, max(2 * timing.settle, (begun - self._started) / 2))
        written = self._delivery.saver.hurry()
        while written is not None and self._m.clock() - begun < longest:
            if self._exited.wait(timing.poll):
                return
            before, written = written, self._delivery.saver.hurry()
            if written is not None and 0 < written - before < 1.25 * timing.settle:
                return

    def _earlier(self) -> list[Point]:
        """Points of earlier attempts, up to the checkpoint this one went on from."""
        restored = self._delivery.restored
        if restored is None:
            return []
        upto = int(restored.record.get("metric_step", 0))
        points = metrics.read(self._m.store, self.attempt.key.run, self.attempt.number)
        return [point for point in points if point.step <= upto]

    def _make_saver(self) -> Saver:
        return Saver(
            self._m.store,
            self.attempt.key.run,
            self.attempt.number,
            self._folder.checkpoint,
            self._job.checkpoint,
            settle=self._m.timing.settle,
            steady=lambda: (running := self._process) is not None and running.steady(),
            covered=lambda record: self._uploader.covered(record.get("points")),
            guard=self._status.guard,
            say=self._uploader.note,
            clock=self._m.clock,
            wall=self._m.wall,
            others=self._leader.collector() if self._leader else None,
        )

    def _make_watchman(self, process: Process, saver: Saver) -> Watchman:
        return Watchman(
            self._job,
            self._folder,
            self._uploader,
            saver,
            process,
            self._m.timing,
            self._m.clock,
            self._state.seconds,
            stop=lambda: self._status.stop,
        )

    def _spawn(self, prepared: Prepared) -> tuple[Process, Command]:
        folder, resuming = self._folder, self._delivery.restored is not None
        built = invocation(
            self._job,
            self._params,
            self.attempt,
            folder,
            base=prepared.env,
            store=self._m.store.url,
            visible=self.placement.visible,
            resuming=resuming,
        )
        if self._leader and self._leader.go:
            built = launched(built, self._job, self._leader.go, 0, folder.folder)
            self._leader.spawns()
        given: dict[str, Any] = {
            "cwd": prepared.cwd,
            "env": built.env,
            "folder": folder.folder,
            "log": folder.log,
        }
        self._showing.interpreters = feed.interpreters(prepared.exe, built.env)
        alone = self._leader is None
        if self._band:
            self._process = self._band.board(self.attempt.key.run, built.argv, **given)
        elif alone and self._m.warm and self._job.warm and self._job.style != "env" and not resuming:
            code = [source_facts(self._job.source), self._job.setup, self._job.cwd]
            self._process = self._m.warm.start(built.argv, **given, code=code)
        else:
            self._process = self._m.start(built.argv, **given)
        leftovers.remember(self._m.session, self.attempt.key.run, self._process)
        if isinstance(self._process, Seat) and self._process.others:
            self._together(self._process.others)
        taken = {"inputs": dict(self._inputs.taken)} if self._inputs.taken else {}
        return self._process, Command(prepared.exe, built.argv, self._job.source, self._uploader.hide, taken)

    def _together(self, others: int) -> None:
        self._ending.ran["together"] = others
        self._uploader.note(f"shares a process with {others} other{'s' * (others != 1)} of its sweep")

    def _about(self, trackers: tuple[Tracking, ...]) -> Subject:
        """Facts of this attempt for tracking tools."""
        m, attempt, job = self._m, self.attempt, replace(self._job, trackers=trackers)
        hide, patience = self._uploader.hide, m.timing.tracker
        return Subject(m.store, job, attempt.key, attempt.number, self._params, m.wall(), hide, patience)

    def _look_after(self, watchman: Watchman, saver: Saver, command: Command) -> bool:
        """It lasts: watch it, save what it saves, write down what it runs on. False if the store did not
        answer; tried once, as the process must be watched."""
        watchman.start()
        saver.start(min(1.0, max(0.05, self._job.checkpoint.every / 4)))
        try:
            self._m.surroundings.write(self._m.store, self.attempt, command, self._m.clock())
        except StoreError:
            return False
        return True

    def _ran(self, command: Command) -> dict[str, Any]:
        return self._m.surroundings.ran(self._m.store, command, self._m.clock())

    def _watch(self, process: Process, watchman: Watchman) -> Exit:
        """Until the process has exited: upload, look after limits, pass a stop request on."""
        memory, every = self._job.resources.memory, self._m.timing.usage
        meter = Meter(process, self.placement.devices, memory, self._m.clock, every)
        while (exit := process.poll()) is None:
            if self._status.fenced:
                process.kill()
                continue
            if self._delivery.saver and self._delivery.saver.broke:
                raise RuntimeError("the thread that saves checkpoints has ended; the worker's log says why")
            if self._leader:
                self._leader.check()
            watchman.check()
            self._showing.heed()
            self._uploader.try_tick()
            if meter.due():
                use = meter.sample()
                watchman.weigh(use)
                self._measured(meter.metrics(use))
            process.wait(self._m.timing.poll)
        if use_at_end := meter.last(exit):
            self._ending.ran["use"] = use_at_end
        self._showing.heed()
        self._uploader.exited()
        return exit

    def _measured(self, use: dict[str, float]) -> None:
        if use:
            self._uploader.add(Point(self._uploader.steps, self._m.wall(), use))
