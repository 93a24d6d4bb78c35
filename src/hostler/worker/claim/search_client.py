"""The search client asks a sweep's search for the next configuration and writes it to the journal.

Of workers that ask at once one gets the next journal entry; the others have read it by then, and ask again.
Where a sampler is not installed the worker says so once, and leaves new configurations to others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import field
from typing import TYPE_CHECKING

from hostler.errors import HostlerError, StoreError
from hostler.frozen import dataclass
from hostler.records.run.log import RUNG, RunKey
from hostler.records.run.state import RunState, fold
from hostler.records.sweep import sweeps
from hostler.records.sweep.ends import EndReader
from hostler.records.sweep.journal import Journal, JournalEntry
from hostler.records.sweep.queue import OpenRun, Queue
from hostler.records.sweep.rungs import RungReader, RungReaders
from hostler.search import telling
from hostler.search.base import Done, History, New, Resume, Rungs, Trial, Wait
from hostler.spec import pruning, space
from hostler.spec.job import Job
from hostler.spec.space import Space
from hostler.spec.states import DONE, PAUSED, PRUNED
from hostler.store import Store

if TYPE_CHECKING:
    from hostler.search.search import Search

May = Callable[[RunState], bool]  # whether a paused run may go on here

PAUSING = ("asha", "hyperband")
UNLOGGED = 3  # runs done without a value before a search that learns from it is halted
TRIES = 8  # lost races for a journal entry before other work is looked for


@dataclass(frozen=True)
class Promoted:
    """A run to claim, and the step up to which it may go on; 0: a new one."""

    run: OpenRun
    until: int = 0


@dataclass(frozen=True)
class _SearchRecords:
    """The search of a sweep, and the records it reads."""

    job: Job
    search: Search
    space: Space | None
    ends: EndReader
    rungs: RungReader
    runs: list[str] = field(default_factory=list)  # ids, as far as they were needed
    told: list[Trial] = field(default_factory=list)  # at the last question


class SearchClient:
    def __init__(self, store: Store, rungs: RungReaders, say: Callable[[str], None]) -> None:
        self._store, self._rungs, self._say = store, rungs, say
        self._desks: dict[str, _SearchRecords] = {}
        self._without: dict[str, Queue] = {}  # sweeps that cannot be asked here

    def promotion(self, queue: Queue, may: May) -> Promoted | None:
        """A paused run that should go on, in a few requests: for sweeps whose new runs are computed. Those
        that may not go on here are passed over."""
        if queue.job.search or not pauses(queue.job):
            return None
        desk = self._desk(queue)
        if desk is None or desk.search.pruner is None:
            return None
        rungs = telling.scores(desk.rungs.update(), _goal(queue.job))
        maybe = {run for rung in rungs.values() for run in rung} - desk.ends.names()
        while resume := desk.search.pruner.promote(rungs, sorted(maybe), over=False):
            state = fold(queue.log(resume.run).read_on().entries)
            if waits(state) and may(state):
                return _promoted(queue, resume, state)
            maybe.discard(resume.run)
        return None

    def ask(
        self, queue: Queue, opens: Sequence[OpenRun], may: May = lambda state: True
    ) -> Promoted | Wait | Done:
        """The search's answer; a new configuration is in the journal by then. `opens`: the sweep's. Of those
        that are paused only such as may go on here are answered."""
        desk = self._desk(queue)
        if desk is None:
            return Done()
        states = {run.key.run: run.state for run in opens}
        for _ in range(TRIES):
            history = self._history(desk, queue, states, may)
            if desk.space and self._halted(queue.job, history.trials):
                return Done()
            answer = desk.search.ask(history)
            if isinstance(answer, Resume):
                return _promoted(queue, answer, states[answer.run])
            if not isinstance(answer, New):
                return answer
            assert queue.journal is not None and desk.space is not None
            won = queue.journal.append(_entry(desk.space, queue.journal, answer), queue.job.budget.runs)
            queue.grow(read=False)
            if won:
                return Promoted(queue.run(queue.job.count - 1))
        return Wait()

    def _halted(self, job: Job, trials: Sequence[Trial]) -> bool:
        """Whether nothing can be learned: runs are done, and none has logged what is looked at."""
        done = [trial for trial in trials if trial.end and trial.end.get("state") == DONE]
        if not job.looked_at or len(done) < UNLOGGED or any(trial.values is not None for trial in done):
            return False
        logged = sorted({name for trial in done for name in (trial.end or {}).get("metrics") or {}})
        shown = ", ".join(name for name in logged if not name.startswith("system/")) or "nothing"
        wanted = " and ".join(objective.name for objective in job.looked_at)
        why = f"{len(done)} runs are done and none has logged {wanted} (logged: {shown})"
        sweeps.halt(self._store, job.name, why, kind=sweeps.UNLOGGED)
        self._say(f"{job.name}: halted: {why}")
        return True

    def _desk(self, queue: Queue) -> _SearchRecords | None:
        name = queue.job.name
        known = self._desks.get(name)
        if known and _same(known.job, queue.job):
            return known
        if self._without.get(name) is queue:
            return None
        try:
            self._desks[name] = self._make(queue.job)
        except StoreError:
            raise
        except HostlerError as error:
            self._without[name] = queue
            self._say(f"{name}: {error}; new configurations are left to other workers")
            return None
        return self._desks[name]

    def _make(self, job: Job) -> _SearchRecords:
        from hostler.search import samplers  # most sweeps search nothing
        from hostler.search.pruners import pruner
        from hostler.search.search import Search

        found = space.from_json(job.search) if job.search else None
        chosen = pruning.parse(job.prune or None)
        search = Search(
            sampler=samplers.sampler(
                found, [objective.goal for objective in job.looked_at] or ["max"], job.seed
            )
            if found
            else None,
            pruner=pruner(chosen) if chosen else None,
            budget=job.budget.runs,
            repeat=found.repeat.count if found else 1,
        )
        rungs = self._rungs.of(job.name, job.searched_from)
        return _SearchRecords(job, search, found, EndReader(self._store, job.name), rungs)

    def _history(self, desk: _SearchRecords, queue: Queue, states: dict[str, RunState], may: May) -> History:
        raw = desk.rungs.update() if queue.job.prune else {}
        rungs = telling.scores(raw, _goal(queue.job))
        paused = {run for run, state in states.items() if waits(state) and may(state)}
        held = {run for run, state in states.items() if state.state == PAUSED} - paused
        if queue.journal is not None:
            first = queue.job.planned
            desk.runs.extend(queue.job.run_id(n) for n in range(first + len(desk.runs), queue.job.count))
            facts = telling.Facts(desk.ends.update(), raw, states.keys(), paused, held)
            entries, looked_at = queue.journal.entries, queue.job.looked_at
            desk.told[:] = telling.trials(entries, desk.runs, facts, looked_at, desk.told)
            return History(desk.told[:], rungs)
        live = states.keys() - paused - held
        failed = set() if live or not paused else _failed(desk.ends, rungs, paused)
        told = [(run, telling.LIVE if run in live else telling.PAUSED) for run in states if run not in held]
        told += [(run, telling.FAILED) for run in failed]
        return History([Trial(n, run, state) for n, (run, state) in enumerate(told)], rungs)


def pauses(job: Job) -> bool:
    """Whether its runs may wait for others and go on later."""
    return job.prune.get("method") in PAUSING and bool(job.prune.get("pause", True))


def asks(job: Job) -> bool:
    """Whether there is something to ask when nothing of it is queued."""
    return bool(job.search) or pauses(job)


def waits(state: RunState) -> bool:
    """Whether a pruner has paused it, and no person since."""
    return state.state == PAUSED and state.paused_by == RUNG


def _failed(ends: EndReader, rungs: Rungs, paused: Collection[str]) -> set[str]:
    """Runs that ended badly, from the highest level down to one where somebody waits or has done well."""
    failed: set[str] = set()
    for level in sorted(rungs, reverse=True):
        over = {run for run in rungs[level] if run not in paused}
        found = ends.update(over)
        bad = {run for run in over if run in found and found[run].get("state") not in (DONE, PRUNED)}
        failed |= bad
        if bad != set(rungs[level]):
            break
    return failed


def _entry(space: Space, journal: Journal, new: New) -> JournalEntry:
    repeat = len(journal.entries) % space.repeat.count
    return JournalEntry(space.fill(new.picks, repeat), new.picks, new.attrs)


def _promoted(queue: Queue, resume: Resume, state: RunState) -> Promoted:
    return Promoted(OpenRun(RunKey(queue.job.name, resume.run), state), resume.until)


def _goal(job: Job) -> str:
    return job.looked_at[0].goal if job.looked_at else job.goal


def _same(one: Job, other: Job) -> bool:
    """Whether the same search asks for both; that one has more runs does not matter."""
    return all(
        getattr(one, name) == getattr(other, name)
        for name in ("search", "prune", "budget", "objectives", "seed", "goal", "journal_from")
    )
