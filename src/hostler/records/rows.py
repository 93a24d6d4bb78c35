"""Rows of all runs of a store, for people and programs, as `status` shows them.

An ended run costs nothing if it is in a segment, else one read (the newest entry of its log is its end); a
running one its log and its worker's heartbeat.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import field
from operator import itemgetter
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from hostler.errors import DamagedError, MissingError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import Record, taken_apart
from hostler.records.packs import packed_store
from hostler.records.run import log
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import LOST, UNREADABLE, RunState, fold
from hostler.records.sweep import sweeps
from hostler.spec.job import Job, Objective, Source, source_fields
from hostler.spec.ranking import Judged, judge
from hostler.spec.states import DONE, PAUSED, QUEUED, RUNNING
from hostler.store import NotFound, Store

if TYPE_CHECKING:
    from hostler.records.series.ended_table import EndedTable

FEW = 5  # runs of a sweep for which nobody looks for segments


@dataclass(frozen=True)
class Row:
    id: str
    name: str
    sweep: str
    index: int
    state: str
    params: Mapping[str, Any]
    metrics: Mapping[str, float] = field(default_factory=dict)
    attempt: int = 0  # how many attempts there were
    host: str | None = None
    step: int | None = None
    tags: tuple[str, ...] = ()
    started: float | None = None
    seconds: float | None = None  # of all attempts, the lost ones too; None while it runs
    ended: float | None = None  # when its end was written
    earlier: float = 0.0  # while it runs: seconds of attempts before
    began: float | None = None  # while it runs: when its newest attempt was claimed
    failure: Record | None = None
    stop: str | None = None
    paused_by: str = ""  # while paused: the reason
    rung: int | None = None  # the step at which a pruner has paused it; it may have come further by then
    why: str = ""  # of a run that is done: why it ended before it was through
    beat_age: float | None = None  # seconds since the holder's last heartbeat, by the store's clock
    stale: bool = False  # older than a lease
    session: str | None = None
    exit: int | None = None
    metric: str | None = None
    goal: str = "max"
    judged: Judged | None = None  # the value that it is ranked by; None if it has not logged the metric
    trashed: bool = False
    claim: int = 0  # number of its newest attempt, while it is open
    code: str = ""  # mark of the code of its newest attempt
    copy_of: str | None = None  # the run of another sweep whose end this is
    by_hand: bool = False  # of a script that a person starts: no worker takes it
    cost: float | None = None  # of its attempts, where a price is known; it grows while it runs
    section: int = 0  # of its sweep's file, from 1; 0 where there are none
    trackers: Mapping[str, str] = field(default_factory=dict)  # tool → where it is seen there
    together: int = 0  # others of its sweep that its process trains, or trained, with it
    lost: bool = False  # its script by hand is dead; started again, that goes on
    forming: str = ""  # of a run of several workers that has not begun: how many have come, as `2 of 4`

    @property
    def key(self) -> RunKey:
        return RunKey(self.sweep, self.id)

    @property
    def counted(self) -> str:
        """The state that it counts as for people."""
        return LOST if self.lost else self.state

    @property
    def silent(self) -> bool:
        """Its holder has not beaten for a lease: nobody knows whether it runs."""
        return self.state == RUNNING and self.stale and not self.lost

    def _repr_html_(self) -> str:
        """As Jupyter shows it."""
        from hostler.records.rich import of_run  # which knows rows

        return of_run(self)


def rows(
    store: Store,
    only: Iterable[str] | None = None,
    *,
    trash: bool = False,
    touched: bool = False,
    by: Objective | None = None,
    say: Callable[[str], None] | None = None,
) -> list[Row]:
    """Runs of these sweeps (all, if none are named), in order of submission name and index. `touched`: only
    those that somebody has had: a sweep may have a million that wait. `by`: judged by this metric and rule,
    not by the sweep's own. `say` gets what cannot be read: a run of which that is so is unreadable, a sweep
    is left out; without it that is an error."""
    alive = Alive(store, say)
    names = sweeps.names(store) if only is None else list(only)
    jobs = filter(None, (_job(store, name, say) for name in names))
    found = (row for job in jobs for row in SweepRuns(store, job, by, say, alive).every(touched=touched))
    return [row for row in found if trash or not row.trashed]


def row_by_key(
    store: Store, job: Job, key: RunKey, say: Callable[[str], None], newest: int = 0
) -> Row | None:
    """Row of a run, trashed or not, without a look at others of its sweep; None without such a run. `newest`:
    the number of the newest entry of its log, where it is known."""
    newest = newest or log.head(store, key)
    if key.index >= job.count or (not newest and key.run != job.run_id(key.index)):
        return None
    facts = _readable_facts(store, job, key, {key.run: newest}, Alive(store, say), job.ranked_by, say)
    tags, trashed = sweeps.tags(store, job, say), sweeps.trashed(store, key.sweep)
    own = tuple(dict.fromkeys([*tags[""], *tags.get(key.run, ())]))
    return row_of(job, key.run, key.index, facts, tags=own, trashed=key.run in trashed)


def others(
    store: Store, job: Job, newest: Mapping[str, int], but: Collection[str], say: Callable[[str], None]
) -> list[Row]:
    """Runs of a sweep whose newest entries are these, without some that the reader has. What cannot be read
    is said, and left out."""
    known = set(_indices(but))
    if known.issuperset(range(job.count)):
        return []
    started = {RunKey(job.name, run).index: run for run in newest if run not in but}
    indices = [i for i in range(job.count) if i not in known and (i in started or i not in job.dropped)]
    alive, found = Alive(store, say), []
    for index in indices:
        run = started.get(index) or job.run_id(index)
        try:
            facts = facts_of(store, RunKey(job.name, run), newest, alive, job.ranked_by)
        except (DamagedError, NewerFormatError) as error:
            say(str(error))
            continue
        found.append(row_of(job, run, index, facts, tags=(), trashed=False))
    return found


def _indices(runs: Iterable[str]) -> Iterator[int]:
    """The index that each id begins with, without a call of Python for each."""
    return map(int, map(itemgetter(slice(7)), runs))


def display_name(job: Job, index: int) -> str:
    return job.name if job.count == 1 else f"{job.name}/{index}"


def display_names(job: Job, indices: Iterable[int]) -> list[str]:
    """Names of many runs of a job, as people see them."""
    alone = job.count == 1
    return [job.name if alone else f"{job.name}/{index}" for index in indices]


class SweepRuns:
    """The runs of a sweep, as its listing shows them. Those that stand in segments can be had by column, the
    others as rows: `ended` and `others`; or all as rows."""

    def __init__(
        self,
        store: Store,
        job: Job,
        by: Objective | None = None,
        say: Callable[[str], None] | None = None,
        alive: Alive | None = None,
    ) -> None:
        self._store, self._job, self._say = store, job, say
        self._alive, self._by = alive or Alive(store, say), by or job.ranked_by
        self.newest = log.heads(store, job.name)
        self._tags, self.trashed = sweeps.tags(store, job, say), sweeps.trashed(store, job.name)
        self._shared, count = tuple(self._tags[""]), job.count
        self._started = {
            i: run for i, run in zip(_indices(self.newest), self.newest, strict=True) if i < count
        }

    def every(self, *, touched: bool) -> Iterator[Row]:
        """All runs as rows, or those that somebody has had."""
        few = len(self.newest) <= FEW
        ends = {} if few else _packed(self._store, self._job.name, self.newest, self._by, self._say)
        for index in sorted(self._started) if touched else shown(self._job, self._started):
            yield self._row(self._started.get(index) or self._job.run_id(index), index, ends)

    def ended(self) -> EndedTable | None:
        """Runs that have ended and stand in segments, but for those in the trash; None where there are so few
        runs that nobody looks for segments."""
        if len(self.newest) <= FEW:
            return None
        from hostler.records.series.ended_table import EndedTable  # with all that reads curves

        table = EndedTable(self._store, self._job.name, self._by)
        table.fill(self._of_job(), self.trashed, self._say or (lambda line: None))
        return table

    def _of_job(self) -> Mapping[str, int]:
        """Newest entries of runs that the job has."""
        if len(self._started) == len(self.newest):
            return self.newest
        return {run: self.newest[run] for run in self._started.values()}

    def others(self, table: EndedTable | None) -> list[Row]:
        """Runs that somebody has had, but for those of the table."""
        held = table.runs if table else {}
        left = [(index, run) for index, run in self._started.items() if run not in held]
        return [self._row(run, index) for index, run in sorted(left)]

    def ended_row(self, table: EndedTable, run: str) -> Row:
        """A run of the table as a row."""
        end = table.end(run)
        return self._row(run, int(run[:7]), {run: end} if end else {})

    def _row(self, run: str, index: int, ends: Mapping[str, Record] = MappingProxyType({})) -> Row:
        job, key = self._job, RunKey(self._job.name, run)
        facts = _readable_facts(self._store, job, key, self.newest, self._alive, self._by, self._say, ends)
        own = tuple(dict.fromkeys([*self._shared, *self._tags[run]])) if run in self._tags else self._shared
        return row_of(job, run, index, facts, tags=own, trashed=run in self.trashed)


def _readable_facts(
    store: Store,
    job: Job,
    run: RunKey,
    newest: Mapping[str, int],
    alive: Alive,
    by: Objective | None,
    say: Callable[[str], None] | None,
    ends: Mapping[str, Record] = MappingProxyType({}),
) -> dict[str, Any]:
    """Fields of a row; of a run that cannot be read, those that say so."""
    try:
        if run.run in ends:
            facts = end_facts(ends[run.run], by)
        else:
            facts = facts_of(store, run, newest, alive, by)
    except (DamagedError, NewerFormatError) as error:
        if say is None:
            raise
        say(str(error))
        return unreadable(error)
    if job.resources.nodes > 1:
        facts = {**facts, "forming": _forming(store, job, run.run, facts)}
    return facts


def _packed(
    store: Store,
    name: str,
    newest: Mapping[str, int],
    by: Objective | None,
    say: Callable[[str], None] | None,
) -> dict[str, Record]:
    """Ends of runs that stand in segments."""
    from hostler.records.series import packing  # with all that reads curves

    metric = by.name if by else None
    return packing.ends(store, name, newest, say or (lambda line: None), ranked_by=metric)


def _job(store: Store, name: str, say: Callable[[str], None] | None) -> Job | None:
    """None if it is being submitted, or deleted, right now; or if it cannot be read, and that is said."""
    try:
        packed_store.check(store, name)
        return sweeps.load(store, name)
    except MissingError:
        return None
    except (DamagedError, NewerFormatError) as error:
        if say is None:
            raise
        say(f"{name} is left out: {error}")
        return None


def unreadable(error: Exception) -> dict[str, Any]:
    """Fields of a row for a run whose log is damaged."""
    return {"state": UNREADABLE, "failure": {"kind": UNREADABLE, "message": str(error)}}


def row_of(
    job: Job, run: str, index: int, facts: Mapping[str, Any], *, tags: tuple[str, ...], trashed: bool
) -> Row:
    """`facts` may hold its parameters, where they are known already."""
    others = dict(facts)
    params = others.pop("params", None)
    return Row(
        id=run,
        name=display_name(job, index),
        sweep=job.name,
        index=index,
        params=job.params(index) if params is None else params,
        section=job.section(index),
        tags=tags,
        metric=job.metric,
        goal=job.goal,
        by_hand=job.by_hand,
        trashed=trashed,
        **others,
    )


def shown(job: Job, started: Collection[int]) -> Iterator[int]:
    """All but what was dropped from the file before anybody took it."""
    return (i for i in range(job.count) if i in started or i not in job.dropped)


def facts_of(
    store: Store, run: RunKey, newest: Mapping[str, int], alive: Alive, by: Objective | None
) -> dict[str, Any]:
    """Fields of a row from the run's log, judged by a metric; `newest`: run → number of its newest entry."""
    k = newest.get(run.run, 0)
    key = layout.log_entry(run.sweep, run.run, k)
    try:
        entry = log.parse_entry(store.get(key).data, key) if k else None
    except NotFound:  # deleted right now
        entry = None
    if entry is None:
        return {"state": QUEUED}
    with taken_apart(key):
        if entry["kind"] == log.END:
            return end_facts(entry, by)
        return _open(RunLog(store, run).read_to(k), alive, by)


def end_facts(end: Record, by: Objective | None) -> dict[str, Any]:
    return {
        "state": end["state"],
        "metrics": _last_values(end.get("metrics") or {}),
        "judged": judge(end, by) if by else None,
        "attempt": end.get("attempts", 1),
        "host": end.get("host"),
        "step": end.get("step"),
        "seconds": end.get("total") or end.get("seconds"),
        "started": end.get("started"),
        "ended": end.get("at"),
        "failure": dict(end["failure"]) if end.get("failure") else None,
        "exit": end.get("exit"),
        "why": str(end.get("why") or "") if end["state"] == DONE else "",
        "code": end.get("code") or "",
        "copy_of": end.get("copy_of"),
        "cost": end.get("cost"),
        "trackers": end.get("trackers") or {},
        "together": end.get("together") or 0,
    }


def _open(run_log: RunLog, alive: Alive, by: Objective | None) -> dict[str, Any]:
    state = fold(run_log.entries)
    record = next((entry for entry in reversed(run_log.entries) if entry.get("metrics")), {})
    facts: dict[str, Any] = {
        "state": state.state,
        "attempt": state.attempts,
        "claim": state.attempt,
        "host": state.host,
        "started": state.first or None,
        "failure": state.failure,
        "stop": state.stop,
        "paused_by": state.paused_by,
        "session": state.session,
        "cost": state.cost or None,
        "metrics": _last_values(record.get("metrics") or {}),
        "judged": judge(record, by) if by else None,
        "code": Source(**source_fields((state.claim or {}).get("source") or {})).mark,
    }
    if state.state == PAUSED:
        facts["rung"] = _newest(run_log.entries, "rung") if state.paused_by == log.RUNG else None
        return facts | {"step": _newest(run_log.entries, "step"), "seconds": state.spent or None}
    if state.state == RUNNING:
        facts["earlier"] = state.spent
        facts["began"] = (state.claim or {}).get("at")
        facts |= _beating(run_log.key, state, alive, by)
        return facts | {"stale": True, "lost": True} if _is_dead(state) else facts
    last = run_log.entries[-1]
    if last["kind"] == log.RELEASE and last.get("why") == LOST and (state.claim or {}).get("holder"):
        facts |= {"lost": True, "step": last.get("step"), "seconds": state.spent or None}
    return facts


def _is_dead(state: RunState) -> bool:
    """Whether its holder is a script by hand that died on this machine."""
    claim = state.claim or {}
    if not claim.get("holder"):
        return False
    from hostler.records.run import holder  # only for scripts by hand

    return holder.is_gone(claim) is True


def _forming(store: Store, job: Job, run: str, facts: Mapping[str, Any]) -> str:
    """How many of its workers have come, until they go."""
    if facts["state"] != RUNNING or facts.get("stale"):
        return ""
    from hostler.records.run.gang import Gang  # few runs take several workers

    gang_view = Gang(store, run, int(facts["claim"])).look()
    return "" if gang_view.go else f"{1 + len(gang_view.here)} of {job.resources.nodes}"


def _last_values(totals: Mapping[str, Mapping[str, float]]) -> dict[str, float]:
    return {name: row["last"] for name, row in totals.items()}


def _newest(entries: list[Record], fact: str) -> Any:
    """As the last attempt that said it had it."""
    return next((e[fact] for e in reversed(entries) if e.get(fact)), None)


def _beating(key: RunKey, state: RunState, alive: Alive, by: Objective | None) -> dict[str, Any]:
    if state.session is None:
        return {}
    beat = alive.record(state.session)
    age = alive.age(state.session)
    now = ((beat or {}).get("runs") or {}).get(key.run) or {}
    facts: dict[str, Any] = {
        "beat_age": age,
        "stale": beat is None or (age is not None and age > alive.lease),
    }
    if now.get("metrics"):
        facts["metrics"] = now["metrics"]
        facts["judged"] = _judged_now(now, by) if by else None
    if now.get("together"):
        facts["together"] = now["together"]
    if now:
        facts["step"] = now.get("step")
    if now.get("cost"):
        facts["cost"] = now["cost"]
    if now.get("trackers"):
        facts["trackers"] = now["trackers"]
    return facts


def _judged_now(now: Record, by: Objective) -> Judged | None:
    """The value of a run that runs, from its heartbeat, which has the best of the sweep's metrics alone."""
    best = (now.get("best") or {}).get(by.name) or {}
    last = now["metrics"].get(by.name)
    total = {} if last is None else {by.name: {"last": last, "step": now.get("step"), **best}}
    return judge({"metrics": total, "kept": now.get("kept")}, by)


class Alive:
    """Heartbeats, read once each and only if asked for."""

    def __init__(self, store: Store, say: Callable[[str], None] | None = None) -> None:
        self._store, self._say = store, say
        self._ages: dict[str, float] | None = None
        self._records: dict[str, Record | None] = {}
        self._lease: float | None = None

    @property
    def lease(self) -> float:
        if self._lease is None:
            from hostler.records.launch import serving  # only for runs that somebody holds

            self._lease = serving.lease_of(self._store, self._say)
        return self._lease

    def record(self, session: str) -> Record | None:
        if session not in self._records:
            from hostler.records.run import heartbeats  # only for runs that somebody holds

            self._records[session] = heartbeats.seen(self._store, session, self._say)
        return self._records[session]

    def age(self, session: str) -> float | None:
        if self._ages is None:
            from hostler.records.run import heartbeats  # only for runs that somebody holds

            self._ages = heartbeats.ages(self._store, heartbeats.readers_time)
        return self._ages.get(session)
