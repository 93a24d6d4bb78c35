"""Garbage of a store: checkpoints of runs that are over, code and data that nothing names.

Kept: checkpoints of runs that may go on (not ended, or stopped or failed, unless asked for), of the best run
of each sweep, of what is in the archive, of runs that others take something from, those that a person marked
(`hostler tag RUN@STEP keep`), and those that are younger than the grace (`HOSTLER_GC_GRACE`). Code and data
go only if no sweep, no open run and no archived model names them, and they are older than the grace: a
submission brings them before it says what for, and writes them again if it finds old ones (`reuse.py`). So
does what is left of models not wholly in the archive.

`find` decides, `remove` looks again: right before it deletes, every few seconds while it deletes, and at the
log or the objects of each thing in the moment before that goes. A store cannot delete on a condition, so
this remains: a run that is submitted less than `LOOK` seconds (or one look, if that takes longer) before
its input is deleted finds that input gone, and so does an old blob that is written again between its last
listing and its deletion, milliseconds apart.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from hostler.errors import DamagedError, HostlerError
from hostler.frozen import dataclass
from hostler.records import layout, rows
from hostler.records.checkpoint import archive, checkpoints
from hostler.records.launch import launches
from hostler.records.rows import Row
from hostler.records.run import log, upstream
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series import packing
from hostler.records.sweep import summary, sweeps
from hostler.spec.inputs import all_inputs
from hostler.spec.job import Job
from hostler.spec.reference import split_step
from hostler.spec.states import DONE, ENDED, PRUNED
from hostler.store import NotFound, Store
from hostler.store.base import Entry

OVER = (DONE, PRUNED)  # ends after which nobody goes on from a checkpoint
YOUNG = "saved a short while ago"  # why checkpoints within the grace stay
MARKED = "marked keep"  # why a checkpoint stays that a person chose
LOOK = 5.0  # seconds of deleting after which it is decided again


@dataclass(frozen=True)
class RunCheckpoints:
    """All checkpoints of one run."""

    row: Row
    keys: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class UnusedObject:
    """Code, data, hostler itself or a driver that nothing names; or what is left of a model that never got
    into the archive, or not wholly out of it. It goes only if it is as it was found."""

    prefix: str
    entries: tuple[Entry, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(entry.key for entry in self.entries)

    @property
    def size(self) -> int:
        return sum(entry.size for entry in self.entries)


@dataclass(frozen=True)
class Waste:
    saved: tuple[RunCheckpoints, ...]
    blobs: tuple[UnusedObject, ...]
    kept: Mapping[str, int]  # why → how many runs keep their checkpoints

    @property
    def size(self) -> int:
        return sum(run_checkpoints.size for run_checkpoints in self.saved) + sum(
            blob.size for blob in self.blobs
        )


def find(
    store: Store,
    now: float,
    states: Collection[str] = OVER,
    *,
    grace: float,
    say: Callable[[str], None] | None = None,
) -> Waste:
    """`now` by the store's clock; `states`: of runs whose checkpoints may go; `grace`: seconds for which
    nothing goes. What cannot be read may need anything, so it is an error. With `say` it is said and left
    out: its own checkpoints stay, and all blobs do."""
    damaged: list[str] = []
    tell = say and _both(damaged.append, say)
    jobs = _jobs(store, tell)
    found = rows.rows(store, jobs, trash=True, touched=True, say=tell)
    needed = _needed(store, jobs, found, states, tell)
    kept: dict[str, int] = {}
    saved = []
    for row in found:
        listed = list(store.list(layout.checkpoints(row.id)))
        if not listed:
            continue
        by_hand = checkpoints.marked(entry.key for entry in listed)
        listed = [entry for entry in listed if not checkpoints.is_at(entry.key, by_hand)]
        why = needed.get(row.id) or (YOUNG if _is_young(listed, now, grace) else "" if listed else MARKED)
        if why:
            kept[why] = kept.get(why, 0) + 1
        else:
            saved.append(RunCheckpoints(row, tuple(e.key for e in listed), sum(e.size for e in listed)))
    blobs = () if damaged else (*_blobs(store, jobs, found, now, grace), *_halves(store, now, grace))
    return Waste(tuple(saved), blobs, kept)


def _both(first: Callable[[str], None], second: Callable[[str], None]) -> Callable[[str], None]:
    def tell(line: str) -> None:
        first(line)
        second(line)

    return tell


def remove(
    store: Store, shown: Waste, look: Callable[[], Waste], clock: Callable[[], float] = time.monotonic
) -> list[str]:
    """Delete what was shown and is waste still, COMMITs first; returns the names of what was needed again.
    `look` finds the waste of this moment."""
    decided = _Decided(store, look, clock)
    spared = []
    for run_checkpoints in shown.saved:
        if saved := decided.saved(run_checkpoints.row.id):
            store.delete(*[key for key in saved.keys if key.endswith("/COMMIT")])
            remaining = [entry.key for entry in store.list(layout.checkpoints(run_checkpoints.row.id))]
            stay = checkpoints.put_back(store, run_checkpoints.row.id, remaining)
            store.delete(*[key for key in saved.keys if not checkpoints.is_at(key, stay)])
        else:
            spared.append(run_checkpoints.row.name)
    for blob in shown.blobs:
        if decided.is_waste(blob):
            store.delete(*blob.keys)
        else:
            spared.append(blob.prefix)
    return spared


def taken(store: Store, say: Callable[[str], None] | None = None) -> dict[str, str]:
    """run → sweep that is not over and takes something from it, or may. `say`: as of `find`."""
    jobs = _jobs(store, say)
    return dict(_taken(store, jobs, rows.rows(store, jobs, trash=True, touched=True, say=say), say))


class _Decided:
    """The waste as last looked at, which is not long ago; and each thing as it is now."""

    def __init__(self, store: Store, look: Callable[[], Waste], clock: Callable[[], float]) -> None:
        self._store, self._look, self._clock = store, look, clock
        self._until = 0.0
        self._decide()

    def saved(self, run: str) -> RunCheckpoints | None:
        """The checkpoints of this run if they may go."""
        self._refresh()
        saved = self._saved.get(run)
        if saved is None or not _is_still(self._store, saved.row, self._head(saved.row)):
            return None
        return saved

    def is_waste(self, blob: UnusedObject) -> bool:
        self._refresh()
        return blob in self._blobs and tuple(self._store.list(blob.prefix)) == blob.entries

    def _refresh(self) -> None:
        if self._clock() >= self._until:
            self._decide()

    def _decide(self) -> None:
        began = self._clock()
        waste = self._look()
        self._saved = {run_checkpoints.row.id: run_checkpoints for run_checkpoints in waste.saved}
        self._blobs = frozenset(waste.blobs)
        self._heads: dict[str, dict[str, int]] = {}
        now = self._clock()
        self._until = now + max(LOOK, now - began)

    def _head(self, row: Row) -> int:
        if row.sweep not in self._heads:
            self._heads[row.sweep] = log.heads(self._store, row.sweep)
        return self._heads[row.sweep].get(row.id, 0)


def _jobs(store: Store, say: Callable[[str], None] | None) -> dict[str, Job]:
    jobs = {}
    for name in sweeps.names(store):
        if sweeps.is_there(store, name):
            try:
                jobs[name] = sweeps.load(store, name)
            except DamagedError as error:
                if say is None:
                    raise
                say(f"{name} is left out: {error}")
    return jobs


def _is_young(entries: Iterable[Entry], now: float, grace: float) -> bool:
    return any(now - entry.modified <= grace for entry in entries)


def _needed(
    store: Store,
    jobs: Mapping[str, Job],
    found: Iterable[Row],
    states: Collection[str],
    say: Callable[[str], None] | None,
) -> dict[str, str]:
    """run → why its checkpoints stay."""
    terms = archive.terms(store)
    needed = {
        row.id: "not over" if row.state not in ENDED else row.state
        for row in found
        if row.state not in states
    }
    for name, job in jobs.items():
        best = summary.ranked(job, [row for row in found if row.sweep == name])[:1]
        needed |= {row.id: "best of its sweep" for _, row in best}
    if terms:
        needed |= {entry.run: "in the archive" for entry in archive.entries(store, terms)}
    return {**needed, **{run: "taken by others" for run, _ in _taken(store, jobs, found, say)}}


def _taken(
    store: Store, jobs: Mapping[str, Job], found: Iterable[Row], say: Callable[[str], None] | None
) -> Iterator[tuple[str, str]]:
    """Runs from which those that are not over take something, or may, and the sweep that does."""
    waiting = {row.sweep for row in found if row.state not in ENDED}
    waiting |= {name for name, job in jobs.items() if job.count > sum(row.sweep == name for row in found)}
    for name in waiting:
        for all_input in all_inputs(jobs[name]):
            wanted, _ = split_step(str(all_input.best_of or all_input.run))
            yield from ((row.id, name) for row in found if wanted in (row.sweep, row.id, row.name))
            yield from ((row.id, name) for row in found if all_input.best_of and row.sweep.startswith(wanted))
    for row in found:
        if row.state not in ENDED:
            yield from ((run, row.sweep) for run in _pinned(store, row.id, say))


def _pinned(store: Store, run: str, say: Callable[[str], None] | None) -> list[str]:
    try:
        return [str(record["run"]) for record in upstream.noted(store, run).values()]
    except NotFound:
        return []
    except DamagedError as error:
        if say is None:
            raise
        say(str(error))
        return []


def _is_still(store: Store, row: Row, head: int) -> bool:
    """Whether the run is as it was when it was looked at, and nothing was appended to its log since."""
    end = packing.end_of(store, row.key, head) if head else None
    try:
        store.get(layout.log_entry(row.sweep, row.id, head + 1))
        return False
    except NotFound:
        return end is not None and end["state"] == row.state


def _blobs(
    store: Store, jobs: Mapping[str, Job], found: Iterable[Row], now: float, grace: float
) -> Iterator[UnusedObject]:
    try:
        named = _named(store, jobs, found)
        launched = _is_launched(store)
    except HostlerError:  # what cannot be read may name anything
        return
    for folder in ("code/", "data/") if launched else ("code/", "data/", "library/", "wheels/"):
        groups: dict[str, list[Entry]] = {}
        for entry in store.list(folder):
            mark = entry.key.removeprefix(folder).partition(".")[0]
            groups.setdefault(mark, []).append(entry)
        for mark, entries in groups.items():
            if mark not in named and not _is_young(entries, now, grace):
                yield UnusedObject(f"{folder}{mark}", tuple(entries))


def _is_launched(store: Store) -> bool:
    """Whether machines of a launch may still begin: they fetch what its template alone names."""
    billed = [launch for launch in launches.everywhere(store) if launch.billed]
    return any(launches.gone_at(store, launch.fleet, launch.number) is None for launch in billed)


def _halves(store: Store, now: float, grace: float) -> Iterator[UnusedObject]:
    """Models without a COMMIT: whoever brought them in, or took them out, was killed."""
    for row in store.list(layout.ARCHIVE, deep=False):
        if not row.key.removeprefix(layout.ARCHIVE)[:1].isdigit():
            continue
        entries = tuple(store.list(row.key))
        if not any(e.key.endswith("/COMMIT") for e in entries) and not _is_young(entries, now, grace):
            yield UnusedObject(row.key, entries)


def _named(store: Store, jobs: Mapping[str, Job], found: Iterable[Row]) -> set[str]:
    """Hashes that a sweep names in any version of its spec, a log of an open run, or an archived model."""
    texts = [
        store.get(entry.key).data for name in sweeps.names(store) for entry in store.list(layout.specs(name))
    ]
    for row in found:
        if row.state not in ENDED:
            entries = RunLog(store, RunKey(row.sweep, row.id)).read_on().entries
            texts += [str(entry).encode() for entry in entries]
    commits = [entry.key for entry in store.list(layout.ARCHIVE) if entry.key.endswith("/COMMIT")]
    texts += [store.get(key).data for key in commits]
    return {mark for text in texts for mark in _hashes(text)} | {row.code for row in found if row.code}


def _hashes(text: bytes) -> set[str]:
    return {mark.decode() for mark in re.findall(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])", text)}
