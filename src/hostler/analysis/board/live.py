"""The runs of a store, kept up to date: each look reads only what is new.

An end that was read stands until its log grows. A sweep with nothing open is looked at every so often, one
with something open with every look, from its first run that has not ended. Rows of a sweep come in the order
of their index. The first look's rows have version 0, since they are not changes. A failed read is kept
as a complaint beside the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from hostler.errors import MissingError, StoreError
from hostler.records import layout
from hostler.records.launch import serving
from hostler.records.rows import Alive, Row, end_facts, facts_of, row_of, shown, unreadable
from hostler.records.run import heartbeats, log
from hostler.records.run.log import RunKey, index_of
from hostler.records.series import packing
from hostler.records.series.packing import PackedRuns
from hostler.records.sweep import sweeps
from hostler.spec.job import Job, Objective
from hostler.spec.states import ENDED, QUEUED, RUNNING
from hostler.store import Store

WHOLE = 10  # looks between two at everything
FIRST = 100  # rows that fill a screen
STRIDE = 50  # rows between two moments at which requests may go first
MOST = 20_000  # of a sweep of more runs those that nobody has had are only counted


@dataclass
class LiveSweep:
    """A sweep as far as it was read."""

    name: str
    job: Job | None = None
    halted: str = ""
    rows: dict[str, Row] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)  # run → when its row last changed
    heads: dict[str, int] = field(default_factory=dict)  # run → number of the newest entry of its log
    marks: tuple[str, ...] = ()  # what tags, trash, halts and spec looked like
    version: int = 0
    submitted: float = 0.0  # its newest version, by the store's clock
    whole: bool = False  # it was read to its end, or as far as it goes
    expected: int = 0  # rows it will have when it was read
    hidden: int = 0  # of these, in the trash
    trouble: str = ""  # why it, or a part of it, cannot be read
    odd: str = ""  # the part

    def note(self, line: str) -> None:
        self.odd = line

    @property
    def calm(self) -> bool:
        return all(row.state in ENDED for row in self.rows.values())

    @property
    def waiting(self) -> int:
        """Runs that nobody has had and that have no row."""
        if self.job is None or self.job.count <= MOST:
            return 0
        return max(0, self.job.count - len(self.job.dropped) - max(len(self.rows), self.expected))


class LiveStore:
    """All sweeps of a store. One thread calls `look`; the rest read what it left."""

    def __init__(
        self,
        store: Store,
        clock: Callable[[], float],
        *,
        at_once: int = 1,
        give_way: Callable[[], None] = lambda: None,
    ) -> None:
        """`at_once`: how many reads of a store that is far are on their way together. `give_way` is called
        every so often while rows are read of which a screen is full already."""
        self.store, self._clock, self._at_once = store, clock, at_once
        self._give_way = give_way
        self.sweeps: dict[str, LiveSweep] = {}
        self.version = 0
        self.trouble = ""  # why the store cannot be read
        self.asked = ""  # the sweep that somebody waits for: a look takes it first
        self._seen = False  # whether a look is over
        self._looks = 0
        self._etags: dict[str, str] = {}
        self._watch: heartbeats.Watch | None = None
        self._stale: frozenset[str] = frozenset()
        self._odd = ""  # what is wrong with the project's record

    def look(self) -> bool:
        """Read what is new; True if anything changed."""
        try:
            return self._look()
        except Exception as error:  # whatever a store holds, the thread that looks at it goes on
            return self._complain(str(error) or type(error).__name__)
        finally:
            self._seen = True

    def forget_calm(self) -> None:
        """Let the next look be at everything."""
        self._looks = 0

    def _look(self) -> bool:
        before, whole = self.version, self._looks % WHOLE == 0
        moved = self._beats()
        names = sweeps.names(self.store)
        self._complain(self._odd)
        for gone in set(self.sweeps) - set(names):
            del self.sweeps[gone]
            self.version += 1
        for name in self._in_turn(names):
            sweep = self.sweeps.get(name) or LiveSweep(name)
            if whole or not sweep.calm or not sweep.rows:
                self._read(sweep, moved, whole=whole)
        self._looks += 1
        return self.version != before

    def _in_turn(self, names: Sequence[str]) -> Iterator[str]:
        left = dict.fromkeys(names)
        while left:
            name = self.asked if self.asked in left else next(iter(left))
            del left[name]
            yield name

    def _complain(self, trouble: str) -> bool:
        changed = trouble != self.trouble
        if changed:
            self.trouble = trouble
            self.version += 1
        return changed

    def _beats(self) -> set[str]:
        """Sessions whose heartbeat is another than at the last look, or has begun to stand still."""
        stamp = self._clock()
        seen = heartbeats.etags(self.store)
        if self._watch is None:
            self._watch = heartbeats.Watch(serving.lease_of(self.store, self._note))
            self._stale = frozenset(_old(self.store, self._watch.lease))
        held = {row.session for sweep in self.sweeps.values() for row in sweep.rows.values() if row.session}
        stale = self._watch.observe(stamp, seen, held | set(seen))
        moved = {s for s in {*seen, *self._etags} if seen.get(s) != self._etags.get(s)}
        was = self._stale
        self._stale = stale | (was - moved)
        self._etags = seen
        return moved | (self._stale ^ was)

    def _note(self, line: str) -> None:
        self._odd = line

    def _read(self, one: LiveSweep, moved: set[str], *, whole: bool) -> None:
        try:
            self._refresh(one, moved, whole=whole)
            trouble = one.odd
        except MissingError:  # being submitted, or deleted, right now
            return
        except Exception as error:  # one sweep's: the others are looked at
            trouble = str(error) or type(error).__name__
        one.whole = True
        if trouble != one.trouble:
            one.trouble = trouble
            self.sweeps[one.name] = one
            self._bump(one)

    def _refresh(self, one: LiveSweep, moved: set[str], *, whole: bool) -> None:
        marks, one.submitted = _marks(self.store, one.name)
        fresh = marks != one.marks
        by = one.job.ranked_by if one.job else None
        if fresh:
            one.job, one.odd = sweeps.load(self.store, one.name), ""
            one.halted = sweeps.why_halted(self.store, one.name, one.note)
            self.sweeps[one.name] = one
            self._bump(one)
        assert one.job is not None
        after = "" if whole or fresh else _first_open(one)
        found = log.heads(self.store, one.name, after)
        anew = one.job.ranked_by != by  # by another metric or rule
        changed = {run for run, k in found.items() if anew or one.heads.get(run) != k}
        one.heads |= found
        again = {r.id for r in one.rows.values() if r.state == RUNNING and r.session in moved}
        self._rows(one, one.job, changed | again, everything=fresh)
        one.marks = marks

    def _rows(self, one: LiveSweep, job: Job, runs: set[str], *, everything: bool) -> None:
        listed = {index_of(run): run for run in (one.heads if everything else runs)}
        indices = list(shown(job, listed)) if everything and job.count <= MOST else sorted(listed)
        if not indices:
            return
        tags, trashed = sweeps.tags(self.store, job, one.note), sweeps.trashed(self.store, one.name)
        count = job.count
        named = [(index, listed.get(index) or job.run_id(index)) for index in indices if index < count]
        if everything:
            one.expected, one.hidden = len(named), sum(run in trashed for _, run in named)
        shared = tuple(dict.fromkeys(tags[""]))
        for (index, run), facts in zip(named, self._all_facts(one, named, runs), strict=True):
            held = tuple(dict.fromkeys([*shared, *tags[run]])) if run in tags else shared
            self._keep(one, row_of(job, run, index, facts, tags=held, trashed=run in trashed))
            if len(one.rows) % STRIDE == 0 and self._may_wait(one):
                self._give_way()

    def _may_wait(self, one: LiveSweep) -> bool:
        """Whether whoever is looking has a screen full of rows."""
        asked = self.sweeps.get(self.asked, one) if self.asked else one
        return asked.whole or len(asked.rows) >= FIRST

    def _all_facts(
        self, one: LiveSweep, named: Sequence[tuple[int, str]], runs: set[str]
    ) -> Iterator[dict[str, Any]]:
        alive = _Beats(self.store, self._stale)
        by = one.job.ranked_by if one.job else None
        many = len(runs) >= packing.RUNS
        ends = PackedRuns(self.store, one.name, one.heads, by.name if by else None) if many else None
        if self._at_once == 1 or len(runs) - (ends.count() if ends else 0) < self._at_once:
            yield from (self._facts(one, run, runs, alive, ends, by) for _, run in named)
            return
        with ThreadPoolExecutor(self._at_once) as pool:
            yield from pool.map(lambda pair: self._facts(one, pair[1], runs, alive, ends, by), named)

    def _facts(
        self,
        one: LiveSweep,
        run: str,
        changed: set[str],
        alive: Alive,
        ends: PackedRuns | None,
        by: Objective | None,
    ) -> dict[str, Any]:
        """`ends`: what segments say of runs that have ended; `by`: what runs are ranked by."""
        if found := ends and ends.of(run):
            return {**end_facts(found[0], by), "params": found[1]}
        known = one.rows.get(run)
        if known is not None and run not in changed:
            return {name: getattr(known, name) for name in _FACTS}
        if run not in one.heads:
            return {"state": QUEUED}
        try:
            return facts_of(self.store, RunKey(one.name, run), one.heads, alive, by)
        except Exception as error:
            if isinstance(error, StoreError):
                raise
            return unreadable(error)

    def _keep(self, one: LiveSweep, row: Row) -> None:
        if one.rows.get(row.id) != row:
            self._bump(one)
            one.rows[row.id] = row
            one.versions[row.id] = one.version if self._seen else 0

    def _bump(self, one: LiveSweep) -> None:
        self.version += 1
        one.version = self.version


_FACTS = [
    "params",
    "state",
    "metrics",
    "judged",
    "attempt",
    "host",
    "step",
    "started",
    "seconds",
    "earlier",
    "began",
    "failure",
    "stop",
    "paused_by",
    "rung",
    "why",
    "beat_age",
    "stale",
    "session",
    "exit",
    "claim",
    "code",
    "copy_of",
    "cost",
    "trackers",
    "together",
    "lost",
]


class _Beats(Alive):
    """Heartbeats, by what this reader has seen of them: it writes no probe."""

    def __init__(self, store: Store, stale: frozenset[str]) -> None:
        super().__init__(store)
        self._standing = stale

    @property
    def lease(self) -> float:
        return 1.0

    def age(self, session: str) -> float | None:
        return 2.0 if session in self._standing else 0.0


def _old(store: Store, lease: float) -> set[str]:
    """Sessions known to be gone at the first look; none where nothing may be written."""
    try:
        return {session for session, age in heartbeats.ages(store).items() if age > lease}
    except StoreError:
        return set()


def _marks(store: Store, name: str) -> tuple[tuple[str, ...], float]:
    """Names of the newest objects that shape a sweep, and when its newest version was submitted."""
    prefixes = (layout.tags(name), layout.trash(name), layout.halts(name), layout.journal(name))
    specs = list(sweeps.versions(store, name))
    stamp = max((f"{entry.key} {entry.etag}" for entry in specs), default="")
    newest = (max((entry.key for entry in store.list(prefix)), default="") for prefix in prefixes)
    return (stamp, *newest), max((entry.modified for entry in specs), default=0.0)


def _first_open(one: LiveSweep) -> str:
    """The key before the log of the first run that has not ended."""
    first = min((r.index for r in one.rows.values() if r.state not in ENDED), default=0)
    return f"{layout.logs_of(one.name)}{first:07d}"
