"""Chooses the run of a script started by hand: the last run of its name, or a new one.

`decide` is pure: the state of that run, whether its holder is gone, and what the script asked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hostler.errors import MissingError, UsageError
from hostler.frozen import dataclass
from hostler.records.run import holder
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import RunState, fold
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.spec.states import DONE, PAUSED, PRUNED, QUEUED, RUNNING, STOPPED
from hostler.store import Store

TAKE = "take"  # claim it as it is
REOPEN = "reopen"  # a person's stop or a failure is undone first
NEW = "new"
WATCH = "watch"  # only its heartbeat can tell


@dataclass(frozen=True)
class Chosen:
    job: Job
    log: RunLog
    lost: RunState | None = None  # held by a process that is gone


def decide(state: RunState, gone: bool | None, resume: str) -> str:
    if resume == "never" or state.state in (DONE, PRUNED):
        return NEW
    if state.state == RUNNING:
        return {True: TAKE, False: NEW, None: WATCH}[gone]
    return TAKE if state.state == QUEUED else REOPEN


class Chooser:
    def __init__(
        self,
        store: Store,
        timing: Timing,
        *,
        clock: Callable[[], float],
        pause: Callable[[float], None],
        say: Callable[[str], None],
        accept: Callable[[Job], None] = lambda job: None,
    ) -> None:
        """`accept` raises if the run of a job that is there may not go on."""
        self._store, self._timing, self._clock, self._pause, self._say = store, timing, clock, pause, say
        self._accept = accept

    def choose(self, wanted: Job, resume: str) -> Chosen:
        """The run to claim. Its job is in the store when this returns."""
        while True:
            known, free = self._known(wanted.name)
            if known is not None:
                chosen = self._again(known, resume)
                if chosen is not None:
                    return chosen
            if resume == "must":
                raise UsageError(
                    f"{wanted.title} has no earlier run to resume", hint='resume="auto" starts a new one'
                )
            job = replace(wanted, name=free)
            if sweeps.submit(self._store, job):
                return Chosen(job, RunLog(self._store, RunKey(job.name, job.run_id(0))))

    def _known(self, base: str) -> tuple[Job | None, str]:
        """The last job named base, base-2, base-3 … that is not in the trash; and the first free name."""
        names, name, n, known = set(sweeps.names(self._store)), base, 1, None
        while name in names:
            try:
                job = sweeps.load(self._store, name)
                known = known if job.run_id(0) in sweeps.trashed(self._store, name) else job
            except MissingError:
                pass
            n += 1
            name = f"{base}-{n}"
        return known, name

    def _again(self, job: Job, resume: str) -> Chosen | None:
        """The run of this job, made ready to be claimed; None: a new one is wanted."""
        key = RunKey(job.name, job.run_id(0))
        run_log = RunLog(self._store, key).read_on()
        state = fold(run_log.entries)
        gone = holder.is_gone(state.claim or {}) if state.state == RUNNING else None
        what = decide(state, gone, resume)
        if what == WATCH:
            what = decide(state, self._stands_still(state), resume)
        if what == NEW:
            if state.state == RUNNING and resume != "never":
                self._say(f"{job.name} is already running on {state.host}: this script starts a second run")
            return None
        self._accept(job)
        if what == REOPEN:
            from hostler.records.run import control  # only for this

            (control.resume if state.state in (STOPPED, PAUSED) else control.retry)(self._store, key)
            run_log.read_on()
        return Chosen(job, run_log, state if state.state == RUNNING else None)

    def _stands_still(self, state: RunState) -> bool:
        """Watch the holder's heartbeat until it is seen to beat, or not to."""
        from hostler.records.run import heartbeats
        from hostler.records.run.heartbeats import Watch

        session, watch = state.session or "", Watch(self._timing.lease)
        self._say(
            f"the run is claimed by {state.host}: checking whether that process is alive, "
            f"for {self._timing.lease:.0f} s at most"
        )
        while True:
            stale = watch.observe(self._clock(), heartbeats.etags(self._store), [session])
            if stale:
                return True
            if session in watch.beating:
                return False
            self._pause(min(self._timing.beat / 2, self._timing.lease / 10))
