"""The process of an attempt while it runs, with all that looks after it: saver, watch, meter, rung watch.

A process that is over within a moment costs no thread and no object but its log: a saver and a watch start,
and what it runs on is written down, only for those that last; where many share one, for those that last
longer.
"""

from __future__ import annotations

import math
import threading
from typing import Any

from hostler.attempt.folder_parts import Declared
from hostler.attempt.folder_watch import FolderWatch
from hostler.attempt.rest import Clocks
from hostler.attempt.saver import Saver, Target
from hostler.errors import StoreError
from hostler.frozen import dataclass
from hostler.records.run import handoff, surroundings
from hostler.records.series import metrics
from hostler.records.series.points import Point
from hostler.records.sweep.rungs import RungReaders
from hostler.spec import pruning
from hostler.spec.argv import Built
from hostler.spec.job import source_facts
from hostler.spec.units import counted
from hostler.trackers import feed
from hostler.worker.gang.leader import Leader
from hostler.worker.prepare.prepare import Prepared
from hostler.worker.process.launching import launched
from hostler.worker.process.process import Exit, Process
from hostler.worker.run import dead_attempt, leftovers
from hostler.worker.run.invocation import invocation
from hostler.worker.run.local_attempt import LocalAttempt
from hostler.worker.run.meter import Meter
from hostler.worker.run.rung_watch import RungWatch
from hostler.worker.run.surroundings import Command
from hostler.worker.run.tracker_feed import TrackerFeed
from hostler.worker.run.watch import Watchman
from hostler.worker.shared.process import SharedProcess
from hostler.worker.shared.slot import SharedSlot

FEW = 32  # runs of shared processes that may each be looked after as often as one alone: of more, more rarely
SAVES = 10.0  # seconds between two looks at a checkpoint folder, at most
LASTS = 30.0  # seconds after which a run of many in one process has a record of its own of what it runs on


@dataclass(frozen=True)
class Started:
    """A process that has started, the saver of its checkpoints, and its command."""

    process: Process
    saver: Saver
    command: Command

    @property
    def rejection(self) -> dict[str, Any] | None:
        """The reason a shared process rejected the run; None if it took it, or the run is alone."""
        return self.process.rejection if isinstance(self.process, SharedSlot) else None


class RunningProcess:
    """`start`, `watch`, then `close`; that may be called at any time, and repeated."""

    def __init__(
        self,
        local: LocalAttempt,
        trackers: TrackerFeed,
        rungs: RungReaders,
        leader: Leader | None = None,
        shared: SharedProcess | None = None,
    ) -> None:
        """`leader`: of a run of several processes. `shared`: the process that it shares with other runs."""
        self._local, self._trackers, self._leader, self._shared = local, trackers, leader, shared
        self._process: Process | None = None
        self._watchman: Watchman | None = None
        self._exited = threading.Event()  # the process, or all hope of one
        self._recorded = False  # what it runs on is in the store
        self._rested: dict[str, Any] = {}  # what is known to be complete in the checkpoint folder
        self._lasts = False
        self._rungs = self._make_rungs(rungs)

    def start(self, prepared: Prepared) -> Started:
        """Start the process. Missed if those that share one have gone without it."""
        local = self._local
        with local.through_gate():
            saver = local.delivery.saver = self._make_saver()  # before the process: what that writes is new
        local.delivery.before = prepared.files if local.job.collect else None
        built = self._invocation(prepared)
        self._trackers.interpreters = lambda: feed.interpreters(prepared.exe, built.env)
        process = self._process = self._spawn(prepared, built)
        local.cost.started()
        with local.through_gate():
            leftovers.remember(local.machine.session, local.run, process)
        if isinstance(process, SharedSlot) and process.others:
            self._note_sharers(process.others)
        taken = {"inputs": dict(local.inputs.taken)} if local.inputs.taken else {}
        command = Command(prepared.exe, built.argv, local.job.source, local.uploader.hide, taken)
        return Started(process, saver, command)

    def watch(self, started: Started) -> tuple[Exit, Watchman]:
        """Look after the process until it has exited."""
        process = started.process
        watchman = self._watchman = self._make_watchman(started)
        if self._rungs:
            self._rungs.start()
        if process.wait(self._local.machine.timing.poll) is None:
            with self._local.through_gate():
                self._look_after(started, watchman)
        return self._watch(started, watchman), watchman

    def record(self, started: Started) -> None:
        """Note what the process ran on in the entry that closes the attempt, if it is not written yet."""
        if not self._recorded:
            self._local.ran |= {surroundings.RAN: self._local.status.deliver(lambda: self._ran(started))}

    def close(self) -> None:
        """End the process and every thread of its own; may be repeated."""
        if self._process:
            self._process.close()
            leftovers.forget(self._local.machine.session, self._local.run)
            self._process = None
        self._exited.set()
        if self._rungs:
            self._rungs.close()
        if self._watchman:
            self._watchman.stop()
        if saver := self._local.delivery.saver:
            saver.stop()

    def _make_rungs(self, readers: RungReaders) -> RungWatch | None:
        """The watch that has the run judged while it runs; None without one, or if a person let it go on."""
        local, job = self._local, self._local.job
        chosen, looked_at = pruning.parse(job.prune or None), job.looked_at
        if chosen is None or not looked_at or local.state.freed:
            return None
        from hostler.search.pruners import pruner  # few runs are judged

        key = local.attempt.key
        watch = RungWatch(
            local.machine.store,
            key,
            local.attempt.number,
            pruner(chosen),
            looked_at[0],
            readers.of(key.sweep, job.searched_from),
            until=local.state.until,
            earlier=lambda: _earlier_points(local),
            save=self._save_soon,
            stop=local.status.ask,
            say=local.uploader.note,
        )
        local.uploader.observer = watch.take
        return watch

    def _make_saver(self) -> Saver:
        local, machine, note = self._local, self._local.machine, self._local.uploader.note
        watch = FolderWatch(
            local.folder.checkpoint,
            Clocks(machine.clock, machine.wall),
            settle=machine.timing.settle,
            steady=lambda: (running := self._process) is not None and running.steady(),
            say=note,
            still_max=machine.sizes.still_max,
            declared=lambda: Declared.read(handoff.read(local.folder.atomic)),
            note=self._note_rested,
        )
        target = Target(
            machine.store,
            local.run,
            local.attempt.number,
            covered=lambda record: local.uploader.covered(record.get("points")),
            guard=local.status.guard,
            others=self._leader.collector() if self._leader else None,
            bundled=local.delivery.bundled,
        )
        return Saver(target, watch, local.job.checkpoint, say=note, clock=machine.clock)

    def _make_watchman(self, started: Started) -> Watchman:
        local, machine = self._local, self._local.machine
        return Watchman(
            local.job,
            local.folder,
            local.uploader,
            started.saver,
            started.process,
            machine.timing,
            machine.clock,
            local.state.seconds,
            stop=lambda: local.status.stop,
        )

    def _invocation(self, prepared: Prepared) -> Built:
        local = self._local
        built = invocation(
            local.job,
            local.inputs.params,
            local.attempt,
            local.folder,
            base=prepared.env,
            store=local.machine.store.url,
            visible=local.placement.visible,
            resuming=self._resumes,
        )
        if self._leader and self._leader.go:
            built = launched(built, local.job, self._leader.go, 0, local.folder.folder)
            self._leader.spawns()
        return built

    @property
    def _resumes(self) -> bool:
        return self._local.delivery.restored is not None

    def _spawn(self, prepared: Prepared, built: Built) -> Process:
        """In a process that it shares, from a warm one, or afresh."""
        local, machine, job = self._local, self._local.machine, self._local.job
        values: dict[str, Any] = {
            "cwd": prepared.cwd,
            "env": built.env,
            "folder": local.folder.folder,
            "log": local.folder.log,
        }
        if self._shared:
            return self._shared.board(local.run, built.argv, **values, exe=prepared.exe)
        alone = self._leader is None
        if alone and machine.warm and job.warm and job.style != "env" and not self._resumes:
            code = [source_facts(job.source), job.setup, job.cwd]
            return machine.warm.start(built.argv, **values, code=code, strict=job.warm == "strict")
        return machine.start(built.argv, **values)

    def _note_sharers(self, others: int) -> None:
        self._local.ran["together"] = others
        self._local.uploader.note(f"shares a process with {counted(others, 'other')} of its sweep")

    def _look_after(self, started: Started, watchman: Watchman) -> None:
        """It lasts: watch it, save what it saves, write down what it runs on."""
        local = self._local
        self._lasts = True
        self._note_rested(self._rested)
        dead_attempt.remember(local, started.process)
        watchman.start()
        process, tick = started.process, min(1.0, max(0.05, local.job.checkpoint.every / 4))
        started.saver.start(
            min(tick * self._rarity(process), SAVES), lambda: process.poll() is not None, local.through_gate
        )
        if not started.process.others:
            self._record_now(started)

    def _record_now(self, started: Started) -> None:
        """Tried once, as the process must be watched: else the attempt's last entry says it."""
        local, machine = self._local, self._local.machine
        try:
            machine.surroundings.write(machine.store, local.attempt, started.command, machine.clock())
            self._recorded = True
        except StoreError:
            return

    def _rarity(self, process: Process) -> float:
        """Times the seconds of a run alone, between two looks after this one."""
        return 1 + max(process.others, self._local.machine.gate.runs) / FEW if process.others else 1.0

    def _note_rested(self, rested: dict[str, Any]) -> None:
        """For a worker that finds the folder after this one was killed."""
        self._rested = rested
        if self._lasts:
            handoff.write(self._local.folder.rested, rested)

    def _watch(self, started: Started, watchman: Watchman) -> Exit:
        """Until the process has exited: upload, look after limits, pass a stop request on."""
        local, machine, uploader = self._local, self._local.machine, self._local.uploader
        process = started.process
        unrecorded = machine.clock() + LASTS if process.others else math.inf
        memory, every = local.job.resources.memory, machine.timing.usage
        meter = Meter(process, local.placement.devices, memory, machine.clock, every, local.peak)
        while (exit := process.poll()) is None:
            if local.status.fenced:
                process.kill()
                continue
            if local.delivery.saver and local.delivery.saver.broke:
                raise RuntimeError("the thread that saves checkpoints has ended; the worker's log says why")
            if self._leader:
                self._leader.check()
            with local.through_gate():
                watchman.check()
                self._trackers.heed()
                uploader.try_tick()
                self._weigh(meter, watchman)
                if machine.clock() >= unrecorded:
                    unrecorded = math.inf
                    self._record_now(started)
            process.wait(machine.timing.poll * self._rarity(process))
        local.gone = process.gone
        local.cost.exited()
        with local.through_gate():
            self._note_exit(exit, meter, watchman)
        return exit

    def _weigh(self, meter: Meter, watchman: Watchman) -> None:
        if meter.due():
            use, uploader = meter.sample(), self._local.uploader
            watchman.weigh(use)
            if values := meter.metrics(use):
                uploader.add(Point(uploader.steps, self._local.machine.wall(), values))

    def _note_exit(self, exit: Exit, meter: Meter, watchman: Watchman) -> None:
        local = self._local
        if local.peak:
            local.peak.end(exit)
        if use_at_end := meter.last(exit):
            local.ran["use"] = use_at_end
        local.gpu = meter.gpu.facts(local.placement.share)
        if self._rungs and self._rungs.rung is not None and watchman.asked:
            local.ran["rung"] = self._rungs.rung
        self._trackers.heed()
        local.uploader.exited()

    def _ran(self, started: Started) -> dict[str, Any]:
        machine = self._local.machine
        return machine.surroundings.ran(machine.store, started.command, machine.clock())

    def _save_soon(self) -> None:
        """Give the saver a chance before the process is stopped: one that does not know of hostler is cut off
        wherever it is. Not if it writes so often that its folder never comes to rest, and no longer than what
        might be lost is worth."""
        saver, clock, timing = (
            self._local.delivery.saver,
            self._local.machine.clock,
            self._local.machine.timing,
        )
        if saver is None or self._local.folder.joined.exists():
            return
        begun = clock()
        longest = min(timing.grace, max(2 * timing.settle, self._local.cost.seconds / 2))
        written = saver.hurry()
        while written is not None and clock() - begun < longest:
            if self._exited.wait(timing.poll):
                return
            before, written = written, saver.hurry()
            if written is not None and 0 < written - before < 1.25 * timing.settle:
                return


def _earlier_points(local: LocalAttempt) -> list[Point]:
    """Points of earlier attempts, up to the checkpoint this one went on from."""
    restored = local.delivery.restored
    if restored is None:
        return []
    upto = int(restored.record.get("metric_step", 0))
    points = metrics.read(local.machine.store, local.run, local.attempt.number)
    return [point for point in points if point.step <= upto]
