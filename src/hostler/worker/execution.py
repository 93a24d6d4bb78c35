"""One attempt at one run, carried out on this machine, in the order things happen.

restore → prepare → spawn → watch → save → conclude. Everything it writes to the store is under its own
attempt number or guarded by the run's log, so that a worker frozen anywhere in here does no harm when it
goes on. Whatever breaks in here, the process is ended and the run given back: a claim is never held by a
worker that does nothing for it.
"""

from __future__ import annotations

import shutil
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from hostler import env
from hostler.errors import (
    DamagedError,
    Fenced,
    MachineError,
    MissingError,
    NewerFormatError,
    PrepareError,
    StoreError,
    UsageError,
)
from hostler.records import checkpoints, handoff, heartbeats, layout, sweeps
from hostler.records.attempt import Attempt
from hostler.records.body import encode
from hostler.records.checkpoints import Checkpoint
from hostler.records.handoff import Handoff
from hostler.records.logs import LogWriter
from hostler.records.metrics import MetricWriter, Origin
from hostler.records.points import Point
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.store import NotFound, Store
from hostler.worker import conclude, leftovers, nvml, outputs, run_folders
from hostler.worker.capture import capture
from hostler.worker.failure import Verdict, classify, unready
from hostler.worker.invocation import invocation
from hostler.worker.kinds import DONE, MACHINE, NOT_FINISHED, WORKER
from hostler.worker.mask import Masker
from hostler.worker.meter import Meter
from hostler.worker.picker import Picker
from hostler.worker.prepare import Prepared, prepare
from hostler.worker.process import Exit, Process
from hostler.worker.pump import Pump
from hostler.worker.saver import Saver
from hostler.worker.slots import Placement
from hostler.worker.watch import Watchman

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

T = TypeVar("T")


@dataclass(frozen=True)
class Machine:
    """What every execution on this worker shares."""

    store: Store
    cache: Path
    session: str
    timing: Timing
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    say: Callable[[str], None] = print
    start: Callable[..., Process] = Process.start


class Execution:
    """Carries out one attempt, in a thread of its own."""

    def __init__(self, machine: Machine, job: Job, attempt: Attempt, placement: Placement) -> None:
        self._m, self.attempt, self.placement = machine, attempt, placement
        self._thread = threading.Thread(target=self._run, name=attempt.key.run, daemon=True)
        self._state = attempt.state
        command = job.command_of(attempt.key.index)
        self._job = replace(sweeps.with_source(job, self._state), command=command)
        self._params = job.params(attempt.key.index)
        self._folder = Handoff(
            run_folders.of_run(machine.cache, machine.session, attempt.key.run, attempt.number)
        )
        self._stop: str | None = None
        self._fenced = False
        self._gave_up = False  # it had to go before the store would take what it had
        self._restored: Checkpoint | None = None
        self._started = machine.clock()
        self._pump = self._make_pump()
        self._process: Process | None = None
        self._saver: Saver | None = None
        self._watchman: Watchman | None = None
        self.outcome = ""
        self.refused = False  # this machine won't do, and others may

    def stop(self, reason: str) -> None:
        """A stop request, from wherever: the first one's reason holds."""
        self._stop = self._stop or reason

    def fence(self) -> None:
        self._fenced = True

    def facts(self) -> dict[str, Any]:
        """For the heartbeat: how far it is."""
        totals = self._pump.totals()
        last = {name: row["last"] for name, row in list(totals.items())[:50]}
        return {"attempt": self.attempt.number, "step": self._pump.steps, "metrics": last}

    @property
    def timed(self) -> bool:
        """Whether its sweep may take only so many hours."""
        return self._job.budget.hours is not None

    def start(self) -> None:
        self._thread.start()

    def is_alive(self) -> bool:
        return self._thread.is_alive()

    def join(self, timeout: float | None = None) -> None:
        self._thread.join(timeout)

    def _run(self) -> None:
        try:
            self._carry_out_or_give_back()
        except Fenced:
            self.outcome = "left to another attempt" if self._gave_up else "taken over by another attempt"
        finally:
            self._close()
            shutil.rmtree(self._folder.folder, ignore_errors=True)

    def _carry_out_or_give_back(self) -> None:
        try:
            self._carry_out()
        except Fenced:
            raise
        except Exception as error:  # a bug, or this machine's trouble: the run must not stay claimed
            self._close()
            said = "".join(traceback.format_exception_only(type(error), error)).strip()
            verdict = Verdict(WORKER, said, traceback.format_exc(), f"worker:{type(error).__name__}")
            self._conclude(verdict, None, progress=self._saver is not None and self._saver.commits > 0)

    def _close(self) -> None:
        """No process, no thread is left of this attempt; again is no harm."""
        if self._process:
            self._process.close()
            leftovers.forget(self._m.session, self.attempt.key.run)
        if self._watchman:
            self._watchman.stop()
        if self._saver:
            self._saver.stop()

    def _carry_out(self) -> None:
        try:
            prepared = self._deliver(self._prepare)
            if prepared is None:
                return
            saver = self._saver = self._make_saver()  # before the process: what that writes is new
            process, argv = self._spawn(prepared)
        except UNREADY as error:
            self._not_ready(unready(error, self._pump.hide))
            return
        watchman = self._watchman = self._make_watchman(process, saver)
        watchman.start()
        saver.start(min(1.0, max(0.05, self._job.checkpoint.every / 4)))
        recorded = self._is_recorded(prepared.exe, argv)
        exit = self._watch(process, watchman)
        self._close()
        if self._fenced:
            raise Fenced(self.attempt.key.run)
        if not recorded:
            self._deliver(lambda: self._record(prepared.exe, argv))
        self._after(exit, watchman, saver)

    def _prepare(self) -> Prepared | None:
        """The checkpoint to go on from; code, packages, data. None: there is nothing left to start."""
        self._folder.make(self._params)
        self._restore()
        if self._restored and self._restored.finished:
            self._end_finished(self._restored)
            return None
        prepared = prepare(self._job, self._m.store, self._m.cache, self._folder.folder, self._pump.note)
        if self._fenced:
            raise Fenced(self.attempt.key.run)
        if self._stop:
            self._conclude(Verdict(NOT_FINISHED, f"stopped: {self._stop}"), None, progress=False)
            return None
        return prepared

    def _restore(self) -> None:
        self._restored = checkpoints.restore_newest(
            self._m.store,
            self.attempt.key.run,
            self._folder.checkpoint,
            skip=self._state.suspects,
            after=self._state.fresh_from,
            before=self.attempt.number,
            say=self._pump.note,
        )
        if self._restored:
            place, record = self._restored.place, self._restored.record
            origin = Origin(place.attempt, place.step, self._restored.position)
            self._deliver(lambda: self._pump.continue_from(origin, record))
            if not self._restored.finished:
                self._pump.note(f"goes on from checkpoint {place.name}")
        elif self._state.attempts > 1:
            self._deliver(self._pump.start_over)

    def _not_ready(self, verdict: Verdict) -> None:
        """It never came to start. Where only this machine is to blame, another one gets it."""
        if verdict.kind == MACHINE and self._stop is None and self._deliver(self._others):
            self.refused = True
            self._write_end(conclude.decline(verdict, self._state, self._job), None)
        else:
            self._conclude(verdict, None, progress=False)

    def _others(self) -> bool:
        """Whether another worker is alive."""
        ages = heartbeats.ages(self._m.store)
        return any(s != self._m.session and age < self._m.timing.lease for s, age in ages.items())

    def _make_pump(self) -> Pump:
        m, run, number = self._m, self.attempt.key.run, self.attempt.number
        return Pump(
            self._folder.log,
            self._folder.metrics,
            LogWriter(m.store, run, number),
            MetricWriter(m.store, run, number),
            Picker(self._job.metrics),
            Masker(self._secrets()),
            m.timing,
            m.clock,
            m.wall,
        )

    def _make_saver(self) -> Saver:
        return Saver(
            self._m.store,
            self.attempt.key.run,
            self.attempt.number,
            self._folder.checkpoint,
            self._job.checkpoint,
            settle=self._m.timing.settle,
            steady=lambda: self._process is not None and self._process.steady(),
            covered=self._pump.covered,
            guard=self._guard,
            say=self._pump.note,
            clock=self._m.clock,
            wall=self._m.wall,
        )

    def _make_watchman(self, process: Process, saver: Saver) -> Watchman:
        return Watchman(
            self._job,
            self._folder,
            self._pump,
            saver,
            process,
            self._m.timing,
            self._m.clock,
            self._state.seconds,
            stop=lambda: self._stop,
        )

    def _spawn(self, prepared: Prepared) -> tuple[Process, Sequence[str]]:
        folder = self._folder
        built = invocation(
            self._job,
            self._params,
            self.attempt,
            folder,
            base=prepared.env,
            store=self._m.store.url,
            visible=self.placement.visible,
            resuming=self._restored is not None,
        )
        self._process = self._m.start(
            built.argv, cwd=prepared.cwd, env=built.env, folder=folder.folder, log=folder.log
        )
        leftovers.remember(self._m.session, self.attempt.key.run, self._process)
        return self._process, built.argv

    def _is_recorded(self, exe: str, argv: Sequence[str]) -> bool:
        """Tried once while the process runs, which must be watched: False if the store did not answer."""
        try:
            self._record(exe, argv)
        except StoreError:
            return False
        return True

    def _record(self, exe: str, argv: Sequence[str]) -> None:
        """Write down what this attempt ran on."""
        gpus = nvml.read()
        try:
            facts = capture(exe, argv, gpus.gpus, driver=gpus.driver, secrets=self._secrets())
        except (
            MachineError,
            OSError,
        ) as error:  # a Python that does not answer may not be the one that is used
            facts = {"command": [self._pump.hide(word) for word in argv], "problem": str(error)}
        key = layout.environment(self.attempt.key.run, self.attempt.number)
        self._m.store.put(key, encode({**facts, "source": asdict(self._job.source)}))

    def _secrets(self) -> list[str]:
        return [value for name in self._job.secrets if (value := env.secret(name))]

    def _guard(self) -> None:
        if self._fenced:
            raise Fenced(self.attempt.key.run)
        self.attempt.guard()

    def _watch(self, process: Process, watchman: Watchman) -> Exit:
        """Until the process has exited: pump, look after limits, pass a stop request on."""
        memory, every = self._job.resources.memory, self._m.timing.usage
        meter = Meter(process, self.placement.devices, memory, self._m.clock, every)
        while (exit := process.poll()) is None:
            if self._fenced:
                process.kill()
                continue
            if self._saver and self._saver.broke:
                raise RuntimeError("the thread that saves checkpoints has ended; the worker's log says why")
            watchman.check()
            self._pump.pump()
            if meter.due():
                use = meter.sample()
                watchman.weigh(use)
                self._measured(meter.metrics(use))
            process.wait(self._m.timing.poll)
        self._measured(meter.last(exit))
        self._pump.finish()
        return exit

    def _measured(self, use: dict[str, float]) -> None:
        if use:
            self._pump.add(Point(self._pump.steps, self._m.wall(), use))

    def _after(self, exit: Exit, watchman: Watchman, saver: Saver) -> None:
        finished = handoff.read(self._folder.finished)
        self._deliver(self._pump.flush)
        verdict = classify(
            exit,
            self._pump.tail.decode("utf-8", "replace"),
            stop=self._stop if watchman.asked else None,
            killed_for=watchman.killed_for,
            finished=finished is not None,
            progress=saver.commits > 0,
        )
        trusted = exit.code is not None and exit.code < 128 and verdict.kind not in ("memory", "disk-full")
        result = None
        if verdict.kind == DONE:
            result = {"summary": finished or {}, "metrics": self._pump.totals(), "code": exit.code or 0}
        steps: list[Callable[[], object]] = [
            lambda: saver.final(trusted=trusted, finished=result),
            lambda: outputs.keep(self._m.store, self.attempt, self._folder, self._job.outputs, self._guard),
        ]
        if result is not None:  # whoever finds a finished checkpoint ends the run: its outputs go before it
            steps.reverse()
        for step in steps:
            self._deliver(step)
        self._conclude(verdict, exit, progress=saver.commits > 0, result=result)

    def _conclude(
        self, verdict: Verdict, exit: Exit | None, *, progress: bool, result: dict[str, Any] | None = None
    ) -> None:
        what = conclude.conclude(verdict, self._stop, progress, self._state, self._job)
        self._write_end(what, exit, result)

    def _write_end(
        self, what: conclude.Conclusion, exit: Exit | None, result: dict[str, Any] | None = None
    ) -> None:
        if what.say:
            self._pump.note(what.say)
        facts = {
            **what.facts,
            **self._end_facts(),
            "seconds": round(self._m.clock() - self._started, 3),
            "exit": (exit.code if exit.signal is None else -exit.signal) if exit else None,
            "metrics": self._pump.totals(),
            "step": self._pump.steps,
            "total": round(self._state.seconds + self._m.clock() - self._started, 3),
            "result": (result or {}).get("summary"),
        }
        self._deliver(self._pump.flush)
        if what.kind == "end":
            self._deliver(lambda: self.attempt.end(what.to, **facts))
        else:
            self._deliver(lambda: self.attempt.release(then=what.to, **facts))
        self.outcome = what.to if what.kind == "end" else f"released ({what.facts.get('why')})"

    def _end_finished(self, checkpoint: Checkpoint) -> None:
        """An attempt before us finished and died before it could say so: say it, start nothing."""
        result = checkpoint.record.get("result") or {}
        self._pump.note(f"attempt {checkpoint.place.attempt} had finished: nothing is started")
        self._pump.flush()
        self.attempt.end(
            DONE,
            **self._end_facts(),
            metrics=result.get("metrics", {}),
            result=result.get("summary"),
            exit=result.get("code", 0),
            step=checkpoint.record.get("metric_step"),
            seconds=0.0,
            total=self._state.seconds,
        )
        self.outcome = DONE

    def _end_facts(self) -> dict[str, Any]:
        return {
            "restored": self._restored.place.name if self._restored else None,
            "host": env.host(),
            "attempts": self._state.attempts,
            "started": self._state.first,
            "code": self._job.source.mark,
        }

    def _deliver(self, act: Callable[[], T]) -> T:
        """Do it with the store, however long it takes to answer again, while the run is ours. A worker that
        was told to go waits no longer than the grace: another one takes the run from its last checkpoint."""
        wait, begun = self._m.timing.wait_min, self._m.clock()
        while True:
            try:
                return act()
            except NotFound:
                raise
            except StoreError as error:
                self._gave_up = (
                    self._stop in conclude.GOING and self._m.clock() - begun >= self._m.timing.grace
                )
                if self._fenced or self._gave_up:
                    raise Fenced(self.attempt.key.run) from None
                self._m.say(f"{self.attempt.key.run}: {error}; trying again")
                time.sleep(wait)
                wait = min(wait * 2, self._m.timing.wait_max)
