"""Reads one sweep for a frame: from the cache, then new segments, then runs in no segment.

The log decides which rows count: those whose end is the newest entry of their run's log. What cannot be read
(a damaged object, a newer format) is said once and left out; everything else is there.
"""

from __future__ import annotations

import gc
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from hostler.analysis.cache import Cache
from hostler.analysis.damage_report import once
from hostler.analysis.stack import SegmentStack
from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import Record, taken_apart
from hostler.records.rows import Row, display_name, display_names, others
from hostler.records.run.log import RunKey
from hostler.records.series import metrics, packing, segments
from hostler.records.series.curve_columns import Track, tracks
from hostler.records.series.segments import PackedRun, Segment
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.spec.params import flatten
from hostler.store import NotFound, Store

AT_ONCE = 16  # requests to a store that is far away

Say = Callable[[str], None]
A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class SweepRead:
    job: Job
    stack: SegmentStack
    tags: Mapping[str, Sequence[str]]  # '': those of all runs; and by run what it has besides

    def names(self, wanted: set[str] | None) -> list[str]:
        """The ids of its runs, '' for one that is not wanted: by id or name."""
        runs = self.stack.runs()
        if wanted is None:
            return runs
        return [run if run in wanted or self._name(run) in wanted else "" for run in runs]

    def display_names(self) -> list[str]:
        return display_names(self.job, [int(run[:7]) for run in self.stack.runs()])

    def _name(self, run: str) -> str:
        return display_name(self.job, int(run[:7]))


def read(store: Store, name: str, say: Say) -> SweepRead:
    """Every run of the sweep that is not in the trash, in order of index."""
    with _uncollected():
        return _read(store, name, once(say))


def _read(store: Store, name: str, say: Say) -> SweepRead:
    job, _ = sweeps.load_spec(store, name)
    cache = Cache(store, name)
    segments_read = packing.begin(store, name, cache.numbers)
    newest = cache.heads(store)
    fresh = segments_read(say)
    parts = [*cache.parts, *fresh.values()]
    rows = newest_rows(parts, newest)
    if job.search and not _is_whole(store, name, rows):
        job = sweeps.load(store, name)
    own = _ended(store, job, [(run, k) for run, k in newest.items() if run not in rows], say)
    if own:
        parts.append(segments.decode(segments.encode(name, own), name))
    if own or fresh:
        cache.add(fresh, parts[len(cache.parts) :])
    live = _open(store, job, newest, {*rows, *(packed_run.run for packed_run in own)}, say)
    if live:
        parts.append(segments.decode(segments.encode(name, live), name))
    if own or live:
        rows = newest_rows(parts, {**dict.fromkeys((packed_run.run for packed_run in live), 0), **newest})
    trashed = sweeps.trashed(store, name)
    order = [rows[run] for run in sorted(rows) if run not in trashed]
    parts = parts or [segments.decode(segments.encode(name, ()), name)]

    def long(run: str) -> list[Track]:
        end = packing.end_of(store, RunKey(name, run), newest.get(run, 0)) or {"attempt": packing.ANY}
        return _tracks(store, run, end)

    return SweepRead(job, SegmentStack(name, parts, order, long), sweeps.tags(store, job, say))


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without garbage collection: all that is made here stays."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def newest_rows(parts: Sequence[Segment], newest: Mapping[str, int]) -> dict[str, int]:
    """run → its row, counted through all parts: the newest one that holds what is newest. Pure."""
    found, base = dict[str, int](), 0
    for part in parts:
        rows = range(base, base + part.rows)
        if [*map(newest.get, part.runs)] == part.ks:  # all of most parts
            found.update(zip(part.runs, rows, strict=True))
        else:
            found |= {
                run: row for run, k, row in zip(part.runs, part.ks, rows, strict=True) if newest.get(run) == k
            }
        base += part.rows
    return found


def _is_whole(store: Store, name: str, rows: Mapping[str, int]) -> bool:
    """Whether all that a search has chosen is there: then its journal need not be read."""
    return sum(1 for _ in store.list(layout.journal(name))) == len(rows)


def _ended(store: Store, job: Job, left: Sequence[tuple[str, int]], say: Say) -> list[PackedRun]:
    """Read the runs among these that have ended, from their own objects."""

    def one(item: tuple[str, int]) -> PackedRun | None:
        key, k = RunKey(job.name, item[0]), item[1]
        if key.index >= job.count:
            return None
        try:
            end = packing.end_of(store, key, k)
            with taken_apart(layout.log_entry(job.name, key.run, k)):
                return _packed(store, key.run, k, end, job.params(key.index)) if end else None
        except (DamagedError, NewerFormatError) as error:
            say(str(error))
            return None

    return [run for run in _many(one, left) if run]


def _packed(store: Store, run: str, k: int, end: Record, params: Mapping[str, Any]) -> PackedRun:
    found = _tracks(store, run, end)
    totals = {**(end.get("metrics") or {}), **track_totals(found)}
    small = sum(track.size for track in found) <= segments.LARGE
    return PackedRun(run, k, end, flatten(params), totals, found if small else None)


def _tracks(store: Store, run: str, end: Record) -> list[Track]:
    of = end.get("copy_of")
    return long_tracks(store, of or run, packing.ANY if of else int(end.get("attempt") or 0))


def _open(store: Store, job: Job, newest: Mapping[str, int], but: set[str], say: Say) -> list[PackedRun]:
    """Runs that go on, or wait, as they are now."""

    def one(row: Row) -> PackedRun:
        facts = _facts(row)
        try:
            return _packed(store, row.id, newest.get(row.id, 0), facts, row.params)
        except (DamagedError, NewerFormatError) as error:
            say(str(error))
            return PackedRun(row.id, newest.get(row.id, 0), facts, flatten(row.params), {}, ())

    return list(_many(one, others(store, job, newest, but, say)))


def _facts(row: Row) -> Record:
    return {
        "attempt": row.claim,
        "state": row.state,
        "attempts": row.attempt,
        "host": row.host,
        "step": row.step,
        "seconds": row.seconds,
        "started": row.started,
        "cost": row.cost,
        "code": row.code or None,
        "failure": row.failure,
    }


def _many(function: Callable[[A], B], items: Sequence[A]) -> Iterable[B]:
    """In order; several at once where there are some."""
    if len(items) <= 2:
        return [function(item) for item in items]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(function, items))


# Long curves from their fragments, without an object for each point: points that all hold the same metrics
# lie in the bytes like the rows of a table.


_HEAD = struct.Struct("<IB")

Table = tuple[list[str], Any]  # names, and a structured array: time, step, values


def long_tracks(store: Store, run: str, attempt: int) -> list[Track]:
    """The curves of a run, as `metrics.read` would tell them."""
    track = _plain(store, run)
    return tracks(metrics.read(store, run, attempt)) if track is None else [track]


def track_totals(found: Sequence[Track]) -> dict[str, dict[str, float]]:
    """`metrics.summary` of their points."""
    return {name: _total(track, values) for track in found for name, values in track.values.items()}


def _total(track: Track, values: Any) -> dict[str, float]:
    numbers = np.asarray(values)
    any_number = not np.isnan(numbers).all()
    low, high = (np.nanargmin(numbers), np.nanargmax(numbers)) if any_number else (-1, -1)
    return {
        "min": float(numbers[low]),
        "min_step": int(track.steps[low]),
        "max": float(numbers[high]),
        "max_step": int(track.steps[high]),
        "last": float(numbers[-1]),
        "step": int(track.steps[-1]),
    }


def _plain(store: Store, run: str) -> Track | None:
    """The curve of a run of one writer that logged the same metrics at every step; None for all others."""
    tables: list[Table] = []
    writers = set()
    for entry in store.list(layout.metrics(run)):
        if (place := layout.split_fragment(entry.key)) is None:
            continue
        writers.add(place[:2])
        try:
            data = store.get(entry.key).data
            table = _table(metrics.body(data, entry.key))
        except NotFound:
            return None
        if table is None or len(writers) > 1:
            return None
        if metrics.is_whole(data, entry.key):
            tables = []
        if len(table[1]):
            tables.append(table)
    if not tables or any(names != tables[0][0] for names, _ in tables):
        return None
    whole = np.concatenate([rows for _, rows in tables])
    return Track(
        whole["step"].astype("<i8"),
        whole["time"].astype("<f8"),
        {name: whole[f"v{n}"].astype("<f8") for n, name in enumerate(tables[0][0])},
    )


def _table(data: bytes) -> Table | None:
    at, names = 0, dict[int, str]()
    while at + _HEAD.size <= len(data):
        length, kind = _HEAD.unpack_from(data, at)
        if kind != 1:
            break
        payload = data[at + _HEAD.size : at + _HEAD.size + length]
        if not 2 <= len(payload) == length:
            return None  # damaged: whoever reads it point by point says so
        names[struct.unpack_from("<H", payload)[0]] = payload[2:].decode("utf-8", "replace")
        at += _HEAD.size + length
    if at == len(data):
        return [], np.empty(0)
    if at + _HEAD.size > len(data):
        return None
    size = _HEAD.size + length
    fields = [("length", "<u4"), ("kind", "u1"), ("time", "<f8"), ("step", "<i8")]
    for n in range(len(names)):
        fields += [(f"i{n}", "<u2"), (f"v{n}", "<f8")]
    if kind != 2 or size != np.dtype(fields).itemsize or (len(data) - at) % size:
        return None
    rows = np.frombuffer(data, np.dtype(fields), offset=at)
    ids = [int(rows[f"i{n}"][0]) for n in range(len(names))]
    same = all(bool((rows[f"i{n}"] == number).all()) for n, number in enumerate(ids))
    if (
        not same
        or not names.keys() >= set(ids)
        or not bool((rows["length"] == length).all() and (rows["kind"] == 2).all())
    ):
        return None
    return [names[one] for one in ids], rows
