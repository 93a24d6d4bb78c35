"""The claimer claims a run for this worker, if its sweep allows one more at once.

Where the holder is gone, the claimer first answers for it: a stop request it never answered, or a budget of
attempts that is used up, ends or pauses the run.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.run import heartbeats
from hostler.records.run.attempt import Attempt, claim, copy_end
from hostler.records.run.entries import Claim, Lost, Outcome, closing
from hostler.records.run.log import CAP, RunLog
from hostler.records.run.state import RunState, count
from hostler.records.sweep import deadline, sweeps
from hostler.records.sweep.concurrency import Turns
from hostler.records.sweep.queue import OpenRun, Queue
from hostler.settings import Timing
from hostler.spec.job import Job, source_facts
from hostler.spec.states import FAILED, PAUSED, QUEUED, RUNNING, STOPPED
from hostler.store import NotFound, Store
from hostler.worker.claim.claimant import Claimant
from hostler.worker.run.conclude import PAUSE, PERSON, exhausted
from hostler.worker.run.kinds import DISK_FULL, MEMORY, POLICY


@dataclass(frozen=True)
class Taken:
    job: Job
    attempt: Attempt


class Claimer:
    def __init__(
        self,
        store: Store,
        claimant: Claimant,
        timing: Timing,
        clock: Callable[[], float],
        rng: random.Random,
        stands: Callable[[str], bool],
        lost: Callable[[str], None] = lambda session: None,
    ) -> None:
        """`stands`: whether a sweep is as it was when its queue was made. `lost` is told of a lost session
        before a run of it is claimed: this machine may have what it left."""
        self._store, self._claimant, self._timing, self._clock = store, claimant, timing, clock
        self._stands, self._lost = stands, lost
        self._turns, self._full = Turns(store, rng), dict[str, bool]()  # whether they allow no more now

    def look_again(self) -> None:
        """Another look begins: sweeps that were full may have a turn free."""
        self._full.clear()

    def is_full(self, job: Job) -> bool:
        """Whether all `parallel` turns of the sweep are taken, as this look has seen it."""
        if job.parallel is not None and job.name not in self._full:
            self._full[job.name] = not self._turns.free(job)
        return self._full.get(job.name, False)

    def may_start(self, queue: Queue, run: OpenRun) -> bool:
        """Whether its sweep allows one more at once; a lost run's turn is its taker's."""
        return run.state.state == RUNNING or not self.is_full(queue.job)

    def take(self, queue: Queue, run: OpenRun, until: int = 0) -> Taken | None:
        """Claim the run; None if it cannot be had now. `until`: the step up to which it may go on."""
        run_log, state = queue.log(run.key.run), run.state
        if state.head != run_log.head:  # read on since: look again next time
            return None
        if not self.may_start(queue, run) or not self._stands(queue.job.name):
            return None
        after = None
        if state.state == RUNNING:
            if state.session and state.session != self._claimant.session:
                self._lost(state.session)
            saved = checkpoints.committed(self._store, run.key.run)
            progress = any(place.attempt == state.attempt for place in saved)
            job = str((state.claim or {}).get("job") or "")
            lasted = heartbeats.lasted(self._store, state.claim or {})
            after = lost(state.attempt, progress, self._claimant.fate(job) if job else "", lasted)
            if not self._is_finished(run, saved) and self._settle(run_log, run, after, queue.job):
                return None
        source = source_facts(sweeps.with_source(queue.job, state).source)
        entry = Claim(self._claimant.session, after, until, {**self._claimant.facts, "source": source})
        attempt = claim(self._store, run_log, self._timing.lease, self._clock, entry)
        if attempt is None:
            return None
        if self._admits(queue.job, attempt):
            return Taken(queue.job, attempt)
        attempt.release(then=QUEUED, why="parallel")
        return None

    def _admits(self, job: Job, attempt: Attempt) -> bool:
        """Whether the sweep allows one more to run now."""
        if job.budget.hours is not None:
            deadline.begin(self._store, job.name)
        if job.parallel is None or self._turns.take(job, attempt.key.run, attempt.number):
            return True
        self._full[job.name] = True
        return False

    def _settle(self, run_log: RunLog, run: OpenRun, after: Lost, job: Job) -> bool:
        """Answer for a holder that is gone; False if the run is to be claimed."""
        state = run.state
        outcome = lost_outcome(state, after, job)
        if outcome is None:
            return False
        outcome = replace(
            outcome,
            attempts=state.attempts,
            host=state.host,
            started=state.first,
            code=sweeps.with_source(job, state).source.mark,
            cost=state.cost or None,
            seconds=after.seconds,
            total=round(state.spent + (after.seconds or 0.0), 3) or None,
        )
        if run_log.append(closing(state.attempt, outcome).record()) and outcome.ends:
            copy_end(self._store, run.key, run_log.head, run_log.entries[-1])
        return True

    def _is_finished(self, run: OpenRun, saved: list[Place]) -> bool:
        """Only its end is missing: it is claimed, to be ended as what it is."""
        saved = [place for place in saved if place.attempt > run.state.fresh_from]
        try:
            return bool(saved) and checkpoints.read(self._store, run.key.run, saved[0]).finished
        except (NotFound, DamagedError, NewerFormatError):
            return False


FAULTS = {  # ends of a worker that its run brought about, and would again
    MEMORY: "its worker was killed for using more memory than it was given",
    DISK_FULL: "its worker was killed for using more disk than it was given",
}


def lost(attempt: int, progress: bool, fate: str, seconds: float | None = None) -> Lost:
    """An attempt whose holder is gone, and how, by its host's word (`Host.fate`). One that took too much
    memory or disk counts as failed. Pure."""
    kind, _, text = fate.partition(": ")
    if kind not in FAULTS:
        return Lost(attempt, progress, kind or "lost", seconds=seconds)
    policy = POLICY[kind]
    message = f"{FAULTS[kind]} ({text})" if text else FAULTS[kind]
    failure = {"kind": kind, "message": message, "advice": policy.advice}
    return Lost(attempt, progress, kind, policy.retry, failure, seconds)


def lost_outcome(state: RunState, after: Lost, job: Job) -> Outcome | None:
    """Outcome of a run whose holder is gone: asked to stop, or lost too often. None: it goes on. Pure."""
    if state.stop == PERSON:
        return Outcome(STOPPED, PERSON)
    if state.stop in (PAUSE, CAP):
        return Outcome(PAUSED, state.stop)
    if why := exhausted(count(state.tally, after.record()), job):
        failure = {"kind": "lost", "message": why, "advice": "look at the machines' own logs"}
        if after.failure:
            failure = {**after.failure, "message": f"{after.failure['message']} ({why})"}
        return Outcome(FAILED, failure=failure)
    return None
