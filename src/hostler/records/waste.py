"""What of a store nobody needs any more: checkpoints of runs that are over, code and data that nothing names.

Kept: checkpoints of runs that may go on (not ended, or stopped or failed, unless asked for), of the best run
of each sweep, of what is in the archive, and of runs that others take something from. Code and data go only
if no sweep, no open run and no archived model names them, and they have lain for a while: a submission
brings them before it says what for. So does what is left of models that are not wholly in the archive.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from hostler.errors import HostlerError
from hostler.records import archive, layout, packing, rows, summary, sweeps
from hostler.records.body import decode
from hostler.records.log import RunKey, RunLog
from hostler.records.rows import Row
from hostler.records.state import DONE, ENDED, PRUNED
from hostler.spec.inputs import all_inputs
from hostler.spec.job import Job
from hostler.store import NotFound, Store

OVER = (DONE, PRUNED)  # ends after which nobody goes on from a checkpoint
LAIN = 86400.0  # seconds: what was brought for a submission that is being made is younger


@dataclass(frozen=True)
class Saved:
    """All checkpoints of one run."""

    row: Row
    keys: tuple[str, ...]
    size: int


@dataclass(frozen=True)
class Blob:
    """Code, data, hostler itself or a driver that nothing names; or what is left of a model that never got
    into the archive, or not wholly out of it: that goes only if it is as it was found."""

    keys: tuple[str, ...]
    size: int
    folder: str = ""
    etags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Waste:
    saved: tuple[Saved, ...]
    blobs: tuple[Blob, ...]
    kept: Mapping[str, int]  # why → how many runs keep their checkpoints

    @property
    def size(self) -> int:
        return sum(one.size for one in self.saved) + sum(one.size for one in self.blobs)


def find(store: Store, now: float, states: Collection[str] = OVER) -> Waste:
    """`now` by the store's clock; `states`: of runs whose checkpoints may go."""
    jobs = {name: sweeps.load(store, name) for name in sweeps.names(store) if sweeps.is_there(store, name)}
    found = rows.rows(store, jobs, trash=True, touched=True)
    needed = _needed(store, jobs, found, states)
    kept: dict[str, int] = {}
    saved = []
    for row in found:
        listed = list(store.list(layout.checkpoints(row.id)))
        if not listed:
            continue
        if row.id in needed:
            kept[needed[row.id]] = kept.get(needed[row.id], 0) + 1
        else:
            saved.append(Saved(row, tuple(e.key for e in listed), sum(e.size for e in listed)))
    blobs = (*_blobs(store, jobs, found, now), *_halves(store, now))
    return Waste(tuple(saved), blobs, kept)


def remove(store: Store, waste: Waste) -> list[str]:
    """Delete it, COMMITs first; a run that is open by now keeps what it has, and is returned."""
    spared = []
    heads = {name: packing.heads(store, name) for name in {one.row.sweep for one in waste.saved}}
    for one in waste.saved:
        if not _is_still(store, one.row, heads[one.row.sweep].get(one.row.id, 0)):
            spared.append(one.row.id)
            continue
        store.delete(*[key for key in one.keys if key.endswith("/COMMIT")])
        store.delete(*one.keys)
    for blob in waste.blobs:
        if not blob.folder or tuple(e.etag for e in store.list(blob.folder)) == blob.etags:
            store.delete(*blob.keys)
    return spared


def _needed(
    store: Store, jobs: Mapping[str, Job], found: Iterable[Row], states: Collection[str]
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
        needed |= {one.run: "in the archive" for one in archive.entries(store, terms)}
    return {**needed, **dict.fromkeys(_taken(store, jobs, found), "taken by others")}


def _taken(store: Store, jobs: Mapping[str, Job], found: Iterable[Row]) -> Iterator[str]:
    """Runs from which those that are not over take something, or may."""
    waiting = {row.sweep for row in found if row.state not in ENDED}
    waiting |= {name for name, job in jobs.items() if job.count > sum(row.sweep == name for row in found)}
    for name in waiting:
        for one in all_inputs(jobs[name]):
            wanted = str(one.best_of or one.run)
            yield from (row.id for row in found if wanted in (row.sweep, row.id, row.name))
            yield from (row.id for row in found if one.best_of and row.sweep.startswith(wanted))
    for row in found:
        if row.state not in ENDED:
            yield from _pinned(store, row.id)


def _pinned(store: Store, run: str) -> list[str]:
    key = layout.inputs(run)
    try:
        return [str(one["run"]) for one in decode(store.get(key).data, key)["inputs"].values()]
    except NotFound:
        return []


def _is_still(store: Store, row: Row, head: int) -> bool:
    """Whether the run is as it was when it was looked at, and nothing was appended to its log since."""
    end = packing.end_of(store, row.key, head) if head else None
    try:
        store.get(layout.log_entry(row.sweep, row.id, head + 1))
        return False
    except NotFound:
        return end is not None and end["state"] == row.state


def _blobs(store: Store, jobs: Mapping[str, Job], found: Iterable[Row], now: float) -> Iterator[Blob]:
    try:
        named = _named(store, jobs, found)
    except HostlerError:  # what cannot be read may name anything
        return
    for prefix in ("code/", "data/", "library/", "wheels/"):
        groups: dict[str, list[tuple[str, int, float]]] = {}
        for entry in store.list(prefix):
            mark = entry.key.removeprefix(prefix).partition(".")[0]
            groups.setdefault(mark, []).append((entry.key, entry.size, entry.modified))
        for mark, objects in groups.items():
            if mark not in named and all(now - modified > LAIN for _, _, modified in objects):
                yield Blob(tuple(key for key, _, _ in objects), sum(size for _, size, _ in objects))


def _halves(store: Store, now: float) -> Iterator[Blob]:
    """Models without a COMMIT: whoever brought them in, or took them out, was killed."""
    for row in store.list(layout.ARCHIVE, deep=False):
        if not row.key.removeprefix(layout.ARCHIVE)[:1].isdigit():
            continue
        found = list(store.list(row.key))
        if any(e.key.endswith("/COMMIT") or now - e.modified <= LAIN for e in found):
            continue
        keys, etags = tuple(e.key for e in found), tuple(e.etag for e in found)
        yield Blob(keys, sum(e.size for e in found), row.key, etags)


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
