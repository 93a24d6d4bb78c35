"""The finder lists open runs, watches for workers that stand still, and claims a run for this worker.

Most claims come from a glance (`untouched_runs.py`), which sees what nobody has touched. A deep look sees
all that is open: what was given back, what a lost worker held, what is paused; it is taken when a glance
finds nothing, and once a lease. A random choice among the first few keeps workers from each other's way. A
claim of this very session that nobody here carries out (its answer was lost, or its thread broke) is free.
What cannot be read, because it is newer than this worker or damaged, is left alone, and said once. Before a
claim, a sweep that was last looked at more than a moment ago (`fresh`) is looked at again: an edit may have
dropped the run, or a halt may hold it.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from hostler.errors import DamagedError, MissingError, NewerFormatError
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.run import heartbeats, upstream
from hostler.records.run.attempt import Attempt, claim, copy_end
from hostler.records.run.entries import Claim, Lost, Outcome, closing
from hostler.records.run.heartbeats import Watch
from hostler.records.run.log import CAP, RunLog
from hostler.records.run.state import RunState, count
from hostler.records.sweep import deadline, sweeps
from hostler.records.sweep.concurrency import Turns
from hostler.records.sweep.queue import OpenRun, Queue
from hostler.records.sweep.rungs import RungReaders
from hostler.search.base import Wait
from hostler.settings import Timing
from hostler.spec import together
from hostler.spec.job import Job, Resources
from hostler.spec.states import FAILED, PAUSED, QUEUED, RUNNING, STOPPED
from hostler.store import NotFound, Store
from hostler.worker.claim import untouched_runs
from hostler.worker.claim.search_client import Asker, Promoted, asks
from hostler.worker.claim.untouched_runs import Glances
from hostler.worker.gang import meeting
from hostler.worker.gang.rendezvous import Joined, Rendezvous
from hostler.worker.run.conclude import PAUSE, PERSON, exhausted

Fits = Callable[[Resources], bool]


@dataclass(frozen=True)
class Taken:
    job: Job
    attempt: Attempt


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
    fellows: int = 0  # runs that other workers of the same launch hold
    gangs: int = 0  # that run elsewhere, and could take this worker

    @property
    def open(self) -> int:
        return self.takeable + self.unfit + self.paused + self.held + self.unheld


@dataclass
class _Seen:
    free: list[tuple[Queue, OpenRun]] = field(default_factory=list)
    unfit: int = 0
    paused: int = 0
    held: int = 0
    unheld: int = 0
    halted: list[str] = field(default_factory=list)
    newer: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    fellows: int = 0
    gangs: int = 0


class Finder:
    def __init__(
        self,
        store: Store,
        session: str,
        timing: Timing,
        clock: Callable[[], float],
        *,
        only: Iterable[str] = (),
        section: int = 0,
        dead: Iterable[str] = (),
        facts: dict[str, Any],
        say: Callable[[str], None] = lambda line: None,
        rng: random.Random | None = None,
        rungs: RungReaders | None = None,
        serves: Callable[[], Iterable[str]] | None = None,
    ) -> None:
        """`serves`: the sweeps of which runs are taken, where more may be added while it works."""
        self._store, self._session, self._timing, self._clock = store, session, timing, clock
        self._only, self._section, self._dead = frozenset(only), section, frozenset(dead)
        self._facts, self._say, self._rng = facts, say, rng or random.Random()
        self._serves = serves
        self._watch = Watch(timing.lease)
        self._asker = Asker(store, rungs or RungReaders(store), self._say_once)
        self._queues: dict[str, Queue] = {}
        self._stamps: dict[str, str] = {}  # of the spec a queue was made from
        self._checked: dict[str, float] = {}  # sweep → when its spec and halts were last looked at
        self._ready: set[str] = set()  # specs whose runs have all that they take from others
        self._by_hand: set[str] = set()  # sweeps of scripts that a person started: never taken here
        self._said: set[str] = set()
        self._glances, self._place = Glances(self._rng), untouched_runs.Place()
        self._loaded = -math.inf  # when the sweeps were last asked for
        self._searched = -math.inf if dead else clock()  # the last deep look
        self._went_through = -math.inf  # the last one that looked at ended runs, too: first thing, if idle
        self._began = clock()
        self._rendezvous = Rendezvous(store, session)
        self._turns, self._full = Turns(store, self._rng), dict[str, bool]()  # whether they allow no more now

    def find(
        self, fits: Fits, can_ever: Fits, *, whole: bool = False, mine: Iterable[str] | None = None
    ) -> Found:
        """Claim one run that fits now: one that nobody has touched, from a glance; else, and once a lease,
        whatever a deep look finds. `can_ever`: would it fit on this machine when empty? `mine`: the runs
        carried out here; None: all that this session holds. `whole`: look deep, and at ended runs, too (a
        person may have reopened one)."""
        now = self._clock()
        self._full.clear()
        if not whole and not self._has_gangs and now - self._searched < self._timing.lease:
            taken = self._glance(fits, now)
            if taken:
                self._went_through = max(self._went_through, self._began)
                return Found(taken)
        self._searched = now
        whole = whole or now - self._went_through >= self._timing.lease
        self._went_through = now if whole else self._went_through
        return self._search(fits, can_ever, whole=whole, mine=mine)

    def mates(self, taken: Taken, limit: Callable[[Job, OpenRun], int], mine: Iterable[str]) -> list[Taken]:
        """Runs that may share this one's process, claimed. `limit` says how many may go with a run. Of those
        that are open each worker takes its share: what runs elsewhere has devices, too."""
        queue, key = self._queues.get(taken.job.name), taken.attempt.key
        if queue is None:
            return []
        own = frozenset(mine)
        free, workers = self._free(queue, own)
        first = OpenRun(key, taken.attempt.state)
        wanted, begun = together.key_of(taken.job, key.index), first.state.attempts > 1
        alike = [
            run
            for run in free
            if run.key.run != key.run
            and (run.state.attempts > 0) == begun  # else they are at different steps
            and together.key_of(queue.job, run.key.index) == wanted
            and limit(queue.job, run) > 1
        ]
        most, share = limit(taken.job, first) - 1, -(-(len(alike) + 1) // workers) - 1
        found: list[Taken] = []
        for run in alike[: min(most, share)]:
            if not self._is_full(queue.job) and (one := self._take(queue, run)):
                found.append(one)
        if first.state.until:
            found += self._promoted(queue, wanted, first.state.until, most - len(found))
        elif queue.job.together.asked and not begun:
            found += self._asked(queue, wanted, most - len(found))
        return found

    def _promoted(self, queue: Queue, wanted: str, until: int, most: int) -> list[Taken]:
        """Others that a pruner lets go on to the same step."""
        found: list[Taken] = []
        while len(found) < most and not self._is_full(queue.job):
            answer = self._asker.promotion(queue)
            if answer is None or answer.until != until:
                break
            alike = together.key_of(queue.job, answer.run.key.index) == wanted
            one = self._take(queue, answer.run, until) if alike else None
            if one is None:
                break
            found.append(one)
        return found

    def _free(self, queue: Queue, mine: frozenset[str]) -> tuple[list[OpenRun], int]:
        """Runs of one sweep that may be claimed, and how many workers are alive."""
        opens, seen = [(queue, run) for run in queue.open(trusting=True)], _Seen()
        stale, _ = self._stale(opens)
        for _, run in opens:
            self._sort(seen, queue, run, stale | self._dropped(run, mine), lambda ask: True)
        workers = len(set(heartbeats.etags(self._store)) - stale - self._dead)
        return [run for _, run in seen.free], max(1, workers)

    def _asked(self, queue: Queue, wanted: str, most: int) -> list[Taken]:
        """Runs that a search wants tried now, as far as they fit with the others; the rest is queued."""
        found: list[Taken] = []
        while len(found) < most and not self._is_full(queue.job) and self._stands(queue.job.name):
            answer = self._asker.ask(queue, queue.open(trusting=True))
            if not isinstance(answer, Promoted) or answer.until:
                break
            alike = together.key_of(queue.job, answer.run.key.index) == wanted
            one = self._take(queue, answer.run) if alike else None
            if one is None:
                break
            found.append(one)
        return found

    @property
    def _has_gangs(self) -> bool:
        """Runs that take several workers: who has room may be waited for, so every look is a deep one."""
        return any(queue.job.resources.nodes > 1 for queue in self._queues.values())

    def forget(self) -> None:
        """The sweeps have changed: ask for them before the next claim."""
        self._loaded = -math.inf

    def _glance(self, fits: Fits, now: float) -> Taken | None:
        if now - self._loaded >= self._timing.beat:
            self._load(_Seen())
            sessions = sorted({*heartbeats.etags(self._store), self._session})
            self._place = untouched_runs.Place(sessions.index(self._session), len(sessions))
        queues = [
            queue
            for queue in self._queues.values()
            if queue.job.resources.nodes == 1 and not self._is_full(queue.job)
        ]
        for queue in queues:
            promoted = self._asker.promotion(queue) if fits(queue.job.resources) else None
            if promoted and (taken := self._take(queue, promoted.run, promoted.until)):
                return taken
        for queue, run in self._glances.choose(queues, fits, self._place):
            taken = self._take(queue, run)
            if taken or self._is_full(queue.job) or not self._knows_all:
                return taken
        return None

    @property
    def _knows_all(self) -> bool:
        """Whether no sweep is known to have changed since it was read."""
        return self._loaded > -math.inf

    def _search(self, fits: Fits, can_ever: Fits, *, whole: bool, mine: Iterable[str] | None) -> Found:
        seen = _Seen()
        opens = self._opens(seen, whole=whole)
        stale, workers = self._stale(opens)
        own = None if mine is None else frozenset(mine)
        for queue, run in opens:
            self._sort(seen, queue, run, stale | self._dropped(run, own), can_ever)
        gangs = self._rendezvous.forming(opens, stale) if self._has_gangs else []
        joined = self._rendezvous.join(gangs, fits, self._place_facts) if gangs else None
        if joined:
            return Found(joined=joined)
        waits = any(can_ever(one.job.resources) for one in gangs)  # for us: none is started meanwhile
        free = [
            f
            for f in seen.free
            if fits(f[0].job.resources)
            and self._may_start(*f)
            and not (waits and f[0].job.resources.nodes > 1)
        ]
        window = self._window(free, 2 * max(1, workers))
        taken = next((t for t in (self._take(queue, run) for queue, run in window) if t), None)
        becoming = 0
        if taken is None:
            queued = {queue.job.name for queue, _ in seen.free}
            taken, becoming = self._ask(fits, can_ever, opens, queued)
        return Found(
            taken,
            None,
            len(seen.free) + waits,
            seen.unfit,
            seen.paused,
            seen.held,
            seen.unheld,
            tuple(seen.halted),
            tuple(seen.newer),
            becoming,
            tuple(seen.waiting),
            seen.fellows,
            seen.gangs,
        )

    def _ask(
        self, fits: Fits, can_ever: Fits, opens: list[tuple[Queue, OpenRun]], queued: set[str]
    ) -> tuple[Taken | None, int]:
        """Ask the searches of sweeps with an empty queue; if no run came of it, how many of them
        may want one later."""
        becoming = 0
        for queue in self._queues.values():
            if not asks(queue.job) or not can_ever(queue.job.resources) or queue.job.name in queued:
                continue
            ready = fits(queue.job.resources) and not self._is_full(queue.job)
            if not ready or not self._stands(queue.job.name):
                becoming += 1
                continue
            answer = self._asker.ask(queue, [run for other, run in opens if other is queue])
            if isinstance(answer, Promoted) and (taken := self._take(queue, answer.run, answer.until)):
                return taken, 0
            becoming += isinstance(answer, (Promoted, Wait))
        return None, becoming

    def _opens(self, seen: _Seen, *, whole: bool) -> list[tuple[Queue, OpenRun]]:
        """Open runs, those of the most urgent sweeps first."""
        found: list[tuple[Queue, OpenRun]] = []
        self._load(seen)
        for name, queue in self._queues.items():
            try:
                found += [(queue, run) for run in queue.open(whole=whole, trusting=not whole)]
            except (DamagedError, NewerFormatError) as error:
                self._say_once(f"{name} is left alone: {error}")
            for run, why in queue.damaged.items():
                self._say_once(f"{run} is left alone: {why}")
        return found

    def _load(self, seen: _Seen) -> None:
        """The sweeps that may be served now, the most urgent first."""
        self._loaded = self._clock()
        queues: dict[str, Queue] = {}
        for name in self._names():
            if name in self._by_hand:
                continue
            self._checked[name] = self._clock()
            try:
                queue = None if sweeps.halted(self._store, name) else self._queue(name)
                if queue is None or deadline.halt_if_over(self._store, queue.job):
                    seen.halted.append(name)
                elif queue.job.by_hand:
                    self._by_hand.add(name)
                elif self._waits(queue.job):
                    seen.waiting.append(name)
                else:
                    queues[name] = queue
            except (MissingError, DamagedError, NewerFormatError) as error:
                if isinstance(error, MissingError) and self._only:
                    raise
                if isinstance(error, NewerFormatError):
                    seen.newer.append(name)
                self._say_once(f"{name} is left alone: {error}")
        self._queues = dict(sorted(queues.items(), key=lambda item: -item[1].job.priority))

    def _waits(self, job: Job) -> bool:
        """Whether its runs take from others that are not over; asked until they are."""
        stamp = self._stamps[job.name]
        if stamp in self._ready:
            return False
        what = upstream.waiting_for(self._store, job)
        if what:
            self._say_once(f"{job.name} waits for {what}")
            return True
        self._ready.add(stamp)
        return False

    def _names(self) -> list[str]:
        if self._serves is not None:
            return sorted(self._serves())
        return sorted(self._only) if self._only else sweeps.names(self._store)

    def _queue(self, name: str) -> Queue:
        stamp = sweeps.stamp(self._store, name)
        known = self._queues.get(name)
        if known is None or self._stamps.get(name) != stamp:  # a large spec is not read for every look
            job = sweeps.load_spec(self._store, name)[0]
            outside = job.outside(self._section) if self._section else None
            known, self._stamps[name] = Queue(self._store, job, outside), stamp
            self._glances.forget(name)
            if outside is not None and len(outside) == job.count:
                self._say_once(f"{name} has no section {self._section}")
        known.grow()
        return known

    def _say_once(self, line: str) -> None:
        if line not in self._said:
            self._said.add(line)
            self._say(line)

    def _dropped(self, run: OpenRun, mine: frozenset[str] | None) -> set[str]:
        """This session, if it holds the run by its log alone."""
        if mine is None or run.state.session != self._session or run.key.run in mine:
            return set()
        return {self._session}

    def _stale(self, opens: list[tuple[Queue, OpenRun]]) -> tuple[set[str], int]:
        """Sessions that stand still, and how many workers there are."""
        holders = {run.state.session for _, run in opens if run.state.state == RUNNING and run.state.session}
        stamp = self._clock()
        seen = heartbeats.etags(self._store)
        return self._watch.observe(stamp, seen, holders) | (self._dead & holders), len(seen)

    def _sort(self, seen: _Seen, queue: Queue, run: OpenRun, stale: set[str], can_ever: Fits) -> None:
        state = run.state
        if state.state == QUEUED or (state.state == RUNNING and state.session in stale):
            if can_ever(queue.job.resources):
                seen.free.append((queue, run))
            else:
                seen.unfit += 1
        elif state.state == PAUSED:
            seen.paused += 1
        else:
            if state.session == self._session or self._is_held(state):
                seen.held += 1
            else:
                seen.unheld += 1
            seen.fellows += self._is_fellow(state)
            asked = queue.job.resources
            seen.gangs += asked.nodes > 1 and state.session != self._session and can_ever(asked)

    def _is_fellow(self, state: RunState) -> bool:
        """Whether another worker of this one's launch holds the run."""
        fleet = self._facts.get("fleet")
        return bool(fleet) and (state.claim or {}).get("fleet") == fleet and state.session != self._session

    @property
    def _place_facts(self) -> dict[str, Any]:
        return {"host": self._facts.get("host", ""), "machine": meeting.machine()}

    def _is_held(self, state: RunState) -> bool:
        """By a worker that was seen alive, and that its engine would bring back."""
        return bool((state.claim or {}).get("restarts")) and state.session in self._watch.beating

    def _window(self, free: list[tuple[Queue, OpenRun]], size: int) -> list[tuple[Queue, OpenRun]]:
        """The first few, in random order: the order of trying. Those somebody has had before go first: they
        waited, and a glance does not see them."""
        first = sorted(free, key=_urgency)[:size]
        self._rng.shuffle(first)
        return sorted(first, key=_urgency)

    def _take(self, queue: Queue, run: OpenRun, until: int = 0) -> Taken | None:
        run_log, state = queue.log(run.key.run), run.state
        if state.head != run_log.head:  # read on since: look again next time
            return None
        if not self._may_start(queue, run) or not self._stands(queue.job.name):
            return None
        after = None
        if state.state == RUNNING:
            saved = checkpoints.committed(self._store, run.key.run)
            after = Lost(state.attempt, any(place.attempt == state.attempt for place in saved))
            if not self._finished(run, saved) and self._settled(run_log, run, after, queue.job):
                return None
        source = asdict(sweeps.with_source(queue.job, state).source)
        entry = Claim(self._session, after, until, {**self._facts, "source": source})
        attempt = claim(self._store, run_log, self._timing.lease, self._clock, entry)
        if attempt is None or self._admitted(queue.job, attempt):
            return Taken(queue.job, attempt) if attempt else None
        attempt.release(then=QUEUED, why="parallel")
        return None

    def _stands(self, name: str) -> bool:
        """Whether the sweep is as it was when its queue was made, and may be served."""
        if not self._knows_all:
            return False
        now = self._clock()
        if now - self._checked[name] < self._timing.fresh:
            return True
        if sweeps.halted(self._store, name) or sweeps.stamp(self._store, name) != self._stamps[name]:
            self.forget()
            return False
        self._checked[name] = now
        return True

    def _may_start(self, queue: Queue, run: OpenRun) -> bool:
        """Whether its sweep allows one more at once; a lost run's turn is its taker's."""
        return run.state.state == RUNNING or not self._is_full(queue.job)

    def _is_full(self, job: Job) -> bool:
        """As this look has seen it."""
        if job.parallel is not None and job.name not in self._full:
            self._full[job.name] = not self._turns.free(job)
        return self._full.get(job.name, False)

    def _admitted(self, job: Job, attempt: Attempt) -> bool:
        """Whether the sweep allows one more to run now."""
        if job.budget.hours is not None:
            deadline.begin(self._store, job.name)
        if job.parallel is None or self._turns.take(job, attempt.key.run, attempt.number):
            return True
        self._full[job.name] = True
        return False

    def _settled(self, run_log: RunLog, run: OpenRun, after: Lost, job: Job) -> bool:
        """Answer for a holder that is gone: a stop request it never answered, or a budget that is used up."""
        state = run.state
        if state.stop == PERSON:
            outcome = Outcome(STOPPED, PERSON)
        elif state.stop in (PAUSE, CAP):
            outcome = Outcome(PAUSED, state.stop)
        elif why := exhausted(count(state.tally, after.record()), job):
            failure = {"kind": "lost", "message": why, "advice": "look at the machines' own logs"}
            outcome = Outcome(FAILED, failure=failure)
        else:
            return False
        outcome = replace(
            outcome,
            attempts=state.attempts,
            host=state.host,
            started=state.first,
            code=sweeps.with_source(job, state).source.mark,
            cost=state.cost or None,
        )
        if run_log.append(closing(state.attempt, outcome).record()) and outcome.ends:
            copy_end(self._store, run.key, run_log.head, run_log.entries[-1])
        return True

    def _finished(self, run: OpenRun, saved: list[Place]) -> bool:
        """Only its end is missing: it is claimed, to be ended as what it is."""
        saved = [place for place in saved if place.attempt > run.state.fresh_from]
        try:
            return bool(saved) and checkpoints.read(self._store, run.key.run, saved[0]).finished
        except (NotFound, DamagedError, NewerFormatError):
            return False


def _urgency(pair: tuple[Queue, OpenRun]) -> tuple[int, bool]:
    return -pair[0].job.priority, pair[1].state.head == 0
