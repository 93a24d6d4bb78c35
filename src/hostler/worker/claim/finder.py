"""The finder lists open runs, watches for workers that stand still, and has a run claimed for this worker.

Which open runs are free, and whose worker is lost, `open_runs.py` decides; `claimer.py` claims.

Most claims come from a glance (`untouched_runs.py`), which sees what nobody has touched. A deep look sees
all that is open: what was given back, what a lost worker held, what is paused; it is taken when a glance
finds nothing, once a lease, and as soon as a worker is lost: its runs go before fresh ones. A random choice
among the first few keeps workers from each other's way. Once a lease a deep look goes through ended runs, too
(a person may have reopened one); in a large fleet with many runs not every worker's does. A claim of this
very session that nobody here carries out (its answer was lost, or its thread broke) is free.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any

from hostler.frozen import dataclass
from hostler.records.sweep.queue import OpenRun, Queue
from hostler.records.sweep.rungs import RungReaders
from hostler.search.base import Wait
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.spec.states import PAUSED, RUNNING
from hostler.store import Store
from hostler.worker.claim import untouched_runs
from hostler.worker.claim.claimant import Claimant, Scope
from hostler.worker.claim.claimer import Claimer, Taken
from hostler.worker.claim.mates import Mates
from hostler.worker.claim.open_runs import (
    CanEver,
    Fits,
    Open,
    by_urgency,
    fitting,
    needed,
    outgrown,
    sort_open,
)
from hostler.worker.claim.search_client import May, Promoted, SearchClient, asks
from hostler.worker.claim.served_sweeps import ServedSweeps
from hostler.worker.claim.session_watch import Sessions, SessionWatch
from hostler.worker.claim.untouched_runs import UntouchedRuns
from hostler.worker.gang import meeting
from hostler.worker.gang.rendezvous import Joined, Rendezvous

CROWD = 1_000  # workers of which each lists the heartbeats no more than once a beat, whatever it loses
WHOLE = 2_000_000  # workers times runs up to which every worker goes through ended runs once a lease


@dataclass(frozen=True)
class Found:
    """Result of looking at the store: perhaps a run, and what else was seen."""

    taken: Taken | None = None
    joined: Joined | None = None  # a place in a gang that another leads
    takeable: int = 0
    unfit: int = 0  # queued, but not for this machine
    paused: int = 0
    held: int = 0
    unheld: int = 0
    halted: tuple[str, ...] = ()
    newer: tuple[str, ...] = ()  # sweeps written by a newer hostler: left alone
    becoming: int = 0  # sweeps of which a search may want more, once others have come further
    waiting: tuple[str, ...] = ()  # sweeps whose runs take from others that are not over
    silent: int = 0  # runs whose holder has missed beats: one may have to be taken over soon
    fellows: int = 0  # runs that other workers of the same launch hold
    gangs: int = 0  # that run elsewhere, and could take this worker
    # a run too large for the GPUs here, and the size that it outgrew
    outgrown: tuple[str, int] | None = None

    @property
    def open(self) -> int:
        return self.takeable + self.unfit + self.paused + self.held + self.unheld


@dataclass(frozen=True)
class Asked:
    """The answer of searches: perhaps a run, else how many may want one later."""

    taken: Taken | None = None
    becoming: int = 0
    unfit: int = 0  # paused runs that are to go on, on a larger GPU than this machine has
    outgrown: tuple[str, int] | None = None  # one of those


class Finder:
    def __init__(
        self,
        store: Store,
        claimant: Claimant,
        timing: Timing,
        clock: Callable[[], float],
        scope: Scope | None = None,
        *,
        say: Callable[[str], None] = lambda line: None,
        rng: random.Random | None = None,
        rungs: RungReaders | None = None,
        lost: Callable[[str], None] = lambda session: None,
        watch: SessionWatch | None = None,
        gpus: bool = False,
    ) -> None:
        """`lost` is told of a lost session before a run of it is claimed. `watch`: over the other workers,
        fed by this one's heartbeat. `gpus`: this machine has some, which may be too small for a sweep."""
        self._store, self._claimant, self._timing, self._clock = store, claimant, timing, clock
        rng, say_once = rng or random.Random(), _once(say)
        self._rng, self._watch = rng, watch or SessionWatch(store, claimant, timing, clock, rng)
        self._search_client = SearchClient(store, rungs or RungReaders(store), say_once)
        self._untouched, self._position = UntouchedRuns(rng), untouched_runs.WorkerPosition()
        self._placed = -math.inf  # when that was chosen
        self._sweeps = ServedSweeps(
            store, scope or Scope(), timing, clock, say_once, self._untouched.forget, gpus=gpus
        )
        self._claimer = Claimer(store, claimant, timing, clock, rng, self._sweeps.stands, lost)
        self.mates = Mates(claimant, self._sweeps, self._watch, self._claimer, self._search_client)
        self._rendezvous = Rendezvous(store, claimant.session)
        self._began = clock()
        self._looked_deep_at = -math.inf if claimant.dead else clock()  # the last deep look
        self._saw_ended_at = -math.inf  # the last one that looked at ended runs, too: first thing, if idle

    def find(
        self,
        fits: Fits,
        can_ever: CanEver,
        *,
        whole: bool = False,
        lost: bool = False,
        mine: Iterable[str] | None = None,
    ) -> Found:
        """Claim one run that fits now: one that nobody has touched, from a glance; else, once a lease and
        after the loss of a worker, whatever a deep look finds. `can_ever`: would it fit on this machine when
        empty? `whole`: look deep, and at ended runs, too (a person may have reopened one). `lost`: claim
        nothing but the run of a lost worker. `mine`: the runs carried out here; None: all that this session
        holds."""
        now = self._clock()
        self._claimer.look_again()
        # Workers with room may be waited for by a gang: with gangs every look is a deep one.
        due = now - self._looked_deep_at >= self._timing.lease or self._watch.lost
        if not whole and not lost and not self._sweeps.has_gangs and not due:
            taken = self._glance(fits)
            if taken:
                self._saw_ended_at = max(self._saw_ended_at, self._began)
                return Found(taken)
        self._looked_deep_at = now
        if now - self._saw_ended_at >= self._timing.lease:
            whole = whole or math.isinf(self._saw_ended_at) or self._looks_at_ended()
            self._saw_ended_at = now
        elif whole:
            self._saw_ended_at = now
        return self._look_deep(fits, can_ever, whole=whole, lost=lost, mine=mine)

    def _looks_at_ended(self) -> bool:
        """Whether this worker looks at ended runs in this lease. A look reads the names of all runs, so that
        of a large fleet only some do, drawn anew in each lease; who finds nothing, or leaves, always does."""
        names = self._watch.known * sum(queue.job.count for queue in self._sweeps)
        return names <= WHOLE or self._rng.random() * names < WHOLE

    def forget(self) -> None:
        """The sweeps have changed: ask for them before the next claim."""
        self._sweeps.forget()

    def open_sweeps(self) -> set[str]:
        """Those in which the last deep look found open runs."""
        return {queue.job.name for queue in self._sweeps if queue.has_open}

    def over(self, sweep: str) -> tuple[Job, int] | None:
        """The sweep and the number of entries in all its logs, if the last look at all runs found every one
        of them ended."""
        queue = self._sweeps.get(sweep)
        if queue is None or queue.entries_when_over is None:
            return None
        return queue.job, queue.entries_when_over

    def _glance(self, fits: Fits) -> Taken | None:
        if self._sweeps.age >= self._timing.beat:
            self._sweeps.load()
            self._take_place(self._watch.recent())
        queues = [
            queue
            for queue in self._sweeps
            if queue.job.resources.nodes == 1 and not self._claimer.is_full(queue.job)
        ]
        for queue in queues:
            may = fitting(fits, queue.job)
            promoted = self._search_client.promotion(queue, may) if fits(queue.job) else None
            if promoted and (taken := self._claimer.take(queue, promoted.run, promoted.until)):
                return taken
        for queue, run in self._untouched.choose(queues, fits, lambda: self._position):
            taken = self._claimer.take(queue, run)
            if taken or self._claimer.is_full(queue.job) or not self._sweeps.is_current:
                return taken
            if self._position.holds(run.key.index):
                self._look_who_is_here()
        return None

    def _take_place(self, sessions: Sessions) -> None:
        """Choose this worker's place among all that have a heartbeat."""
        session = self._claimant.session
        names = sorted({*sessions.names, session})
        before, self._placed = self._position, self._clock()
        self._position = untouched_runs.WorkerPosition(names.index(session), len(names))
        if self._position != before:
            self._untouched.move()

    def _look_who_is_here(self) -> None:
        """Somebody took a run of this worker's share, and so may have come after its last look: workers that
        start together would reach for the same runs until their next beats."""
        timing = self._timing
        pause = max(timing.fresh, timing.beat * self._position.of / CROWD)
        if self._clock() - self._placed >= pause:
            self._take_place(self._watch.look())

    def _look_deep(
        self, fits: Fits, can_ever: CanEver, *, whole: bool, lost: bool, mine: Iterable[str] | None
    ) -> Found:
        served = self._sweeps.load()
        opens = self._sweeps.open_runs(whole=whole)
        sessions = self._sessions(opens)
        own = None if mine is None else frozenset(mine)
        runs = sort_open(opens, self._claimant, sessions, can_ever, own)
        if lost:
            runs.free = [(queue, run) for queue, run in runs.free if run.state.state == RUNNING]
        meets = self._sweeps.has_gangs and not lost
        gangs = self._rendezvous.forming(opens, sessions.stale) if meets else []
        joined = self._rendezvous.join(gangs, fits, self._machine_facts) if gangs else None
        if joined:
            return Found(joined=joined)
        waits = any(can_ever(gang.job.resources) for gang in gangs)  # for us: none is started meanwhile
        taken, asked = self._take_first(runs.free, fits, sessions, waits=waits), Asked()
        if taken is None and not lost:
            queued = {queue.job.name for queue, _ in runs.free}
            asked = self._ask(fits, can_ever, opens, queued)
            taken = asked.taken
        if not self._leaves_lost(runs.free, taken):
            self._watch.looked_deep(sessions)
        return Found(
            taken,
            takeable=len(runs.free) + waits,
            unfit=runs.unfit + asked.unfit,
            paused=runs.paused - asked.unfit,
            held=runs.held,
            unheld=runs.unheld,
            halted=tuple(served.halted),
            newer=tuple(served.newer),
            becoming=asked.becoming,
            waiting=tuple(served.waiting),
            silent=runs.silent,
            fellows=runs.fellows,
            gangs=runs.gangs,
            outgrown=asked.outgrown or runs.outgrown,
        )

    def _sessions(self, opens: list[Open]) -> Sessions:
        holders = (run.state.session or "" for _, run in opens if run.state.state == RUNNING)
        return self._watch.look(holders, whole=True)

    @staticmethod
    def _leaves_lost(free: list[Open], taken: Taken | None) -> bool:
        """Whether a lost run was taken, and others are left: the next look is for them, too."""
        lost = {run.key.run for _, run in free if run.state.state == RUNNING}
        return taken is not None and taken.attempt.key.run in lost and len(lost) > 1

    @property
    def _machine_facts(self) -> dict[str, Any]:
        return {"host": self._claimant.facts.get("host", ""), "machine": meeting.machine()}

    def _take_first(self, free: list[Open], fits: Fits, sessions: Sessions, *, waits: bool) -> Taken | None:
        """Claim one of the most urgent runs that fit. `waits`: a gang waits for us, so none is begun."""
        startable = [
            (queue, run)
            for queue, run in free
            if fits(needed(queue.job, run.state))
            and self._claimer.may_start(queue, run)
            and not (waits and queue.job.resources.nodes > 1)
        ]
        first = by_urgency(startable)[: 2 * max(1, len(sessions.names))]
        self._rng.shuffle(first)
        claims = (self._claimer.take(queue, run) for queue, run in by_urgency(first))
        return next((taken for taken in claims if taken), None)

    def _ask(self, fits: Fits, can_ever: CanEver, opens: list[Open], queued: set[str]) -> Asked:
        """Ask the searches of sweeps with an empty queue."""
        becoming, unfit, large_run = 0, 0, None
        for queue in self._sweeps:
            if not asks(queue.job) or not can_ever(queue.job.resources) or queue.job.name in queued:
                continue
            ready = fits(queue.job) and not self._claimer.is_full(queue.job)
            if not ready or not self._sweeps.stands(queue.job.name):
                becoming += 1
                continue
            runs, may = [run for other, run in opens if other is queue], fitting(fits, queue.job)
            answer = self._search_client.ask(queue, runs, may)
            if isinstance(answer, Promoted) and (
                taken := self._claimer.take(queue, answer.run, answer.until)
            ):
                return Asked(taken)
            large = None if isinstance(answer, Promoted) else self._promoted_elsewhere(queue, runs, may)
            later = large is not None and can_ever(needed(queue.job, large.state).resources)
            becoming += later or isinstance(answer, (Promoted, Wait))
            if large is not None and not later:
                unfit, large_run = unfit + 1, outgrown(queue.job, large, can_ever)
        return Asked(None, becoming, unfit, large_run)

    def _promoted_elsewhere(self, queue: Queue, runs: list[OpenRun], may: May) -> OpenRun | None:
        """The paused run that is to go on, where it needs a larger GPU than is free here."""
        if all(may(run.state) for run in runs if run.state.state == PAUSED):
            return None
        answer = self._search_client.ask(queue, runs)
        return answer.run if isinstance(answer, Promoted) else None


def _once(say: Callable[[str], None]) -> Callable[[str], None]:
    """Say each line only once."""
    known: set[str] = set()

    def say_once(line: str) -> None:
        if line not in known:
            known.add(line)
            say(line)

    return say_once
