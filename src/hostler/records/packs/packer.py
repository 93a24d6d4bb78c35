"""The packer moves ended runs of a sweep into packs, and deletes the originals.

In this order, so that a kill between any two writes loses nothing: the logs are read, then what their runs
left; the packs are written; a record that an older hostler refuses; the seal, which makes the packs count
(another packer may have been faster: then this one has done nothing); after the pause of `packed_store.py`
the originals go, a run's log last. What was cut off before the seal is as if it had not been; what was cut
off after it, the next packer finishes.
"""

from __future__ import annotations

import math
import os
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TypeVar

from hostler.errors import DamagedError, NewerFormatError, StoreError
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import encode
from hostler.records.packs import covered_keys
from hostler.records.packs.pack_format import (
    HEAD,
    PackedObject,
    Where,
    decode_chunk,
    encode_chunk,
)
from hostler.records.packs.packed_store import PAUSE, PackedStore, are_same, numbered_seals, submission
from hostler.records.packs.seals import Seal, decode_seal, encode_seal
from hostler.records.run import log
from hostler.records.run.heartbeats import store_time
from hostler.records.run.state import fold
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import Entry, NotFound
from hostler.store.registry import is_folder

BYTES = 4 << 20  # of a pack, about
LARGE = 64 << 20  # a run that left more keeps it where it is; only its log is packed
TOGETHER = 256  # runs that are read, or deleted, at a time
THREADS = 16  # that ask a store which is far away
REFUSED = 2  # format of the record that an older hostler must not pass over
FORGOTTEN = 86400.0  # seconds after which a pack that no seal names is what a killed packer left

One = TypeVar("One")
Two = TypeVar("Two")


@dataclass(frozen=True)
class PackOutcome:
    """The outcome of packing a sweep."""

    runs: int = 0  # that were packed now
    gone: int = 0  # objects that were deleted
    open: int = 0  # runs that have not ended: nothing was done
    left: int = 0  # runs that cannot be read: they stay as they are
    beaten: bool = False  # another packer was faster


@dataclass(frozen=True)
class _Ready:
    """A run, ready to be packed."""

    run: str
    head: int
    ends: tuple[int, ...]
    whole: bool
    chunk: bytes


def pack(store: PackedStore, job: Job, wait: Callable[[float], None] = time.sleep) -> PackOutcome:
    """Pack what has ended since the sweep was last packed, if all of it has; finish what was cut off."""
    outcome = copy(store, job)
    if outcome.open or outcome.beaten:
        return outcome
    return replace(outcome, gone=finish(store, job.name, wait))


def copy(store: PackedStore, job: Job) -> PackOutcome:
    """Write and seal packs of what has ended since the last time; the originals stay for now."""
    next_seal = _NextSeal(store, job.name)
    seal = next_seal.after
    newest = log.heads(store, job.name)
    fresh = {run: head for run, head in newest.items() if not _is_packed(seal, run, head)}
    waiting = _untouched(store, job, newest)
    if waiting:
        return PackOutcome(open=waiting)
    made = _Packs(store, job.name)
    ends = _ends(store, job.name)
    opened = remaining = 0
    for ready in _each(store, fresh.items(), lambda one: _read(store, job.name, *one, ends.get(one[0], {}))):
        opened += ready is None
        remaining += ready is _DAMAGED
        if ready is not None and ready is not _DAMAGED:
            made.add(ready)
    if opened:
        made.discard()
        return PackOutcome(open=opened)
    if made.rows and not _seal(store, next_seal, made):
        return PackOutcome(beaten=True)
    return PackOutcome(len(made.rows), left=remaining)


def finish(store: PackedStore, sweep: str, wait: Callable[[float], None] = time.sleep) -> int:
    """Delete the originals that a seal covers, once it is old enough; how many went."""
    store.look(sweep)
    seal = store.sealed_whole(sweep)
    if seal is None:
        return 0
    inner, gone = store.inner, 0
    left, copies = _originals(store, seal)
    if left or copies:
        _wait(store, seal, wait)
        left, copies = _originals(store, seal)
    for runs in _batches(sorted({*left, *copies})):
        store.look(sweep)
        series = list(
            _each(store, runs, lambda run: _covered(inner.list(layout.run(run)), seal).get(run, []))
        )
        for keys in (
            *series,
            [k for run in runs for k in copies.get(run, ())],
            [k for run in runs for k in left.get(run, ())],
        ):
            if not _holds(store, seal):  # deleted meanwhile, and perhaps submitted anew
                return gone
            gone += _delete(store, keys)
    _drop_packs(store, seal)
    return gone


def _originals(store: PackedStore, seal: Seal) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Entries of logs, and copies of ends, that are packed and there still, by run."""
    inner, sweep = store.inner, seal.sweep
    return _covered(inner.list(layout.logs_of(sweep)), seal), _covered(inner.list(layout.ends(sweep)), seal)


def _holds(store: PackedStore, seal: Seal) -> bool:
    """Whether this is the newest seal still, or one is that came after it and covers as much."""
    newest = store.sealed(seal.sweep)
    return (
        newest is not None and newest.number >= seal.number and are_same(newest.submission, seal.submission)
    )


def forget(store: PackedStore, sweep: str, runs: Collection[str]) -> None:
    """Write packs anew without what these runs left there, but for their logs."""
    while (seal := (next_seal := _NextSeal(store, sweep)).after) is not None:
        doomed = {run for run in runs if run in seal.rows and _left_any(store, run)}
        lost = {seal.rows[run].pack for run in doomed}
        if not lost:
            return
        made = _Packs(store, sweep)
        try:
            for row in (row for row in seal.rows.values() if row.pack in lost):
                chunk = _log_alone(store, row.run) if row.run in doomed else store.chunk(sweep, row)
                made.add(_Ready(row.run, row.head, row.ends, row.whole or row.run in doomed, chunk))
        except (NotFound, DamagedError):  # another has written it anew, or it cannot be read
            made.discard()
            continue
        if _seal(store, next_seal, made):
            store.inner.delete(*[layout.pack(sweep, name) for name in sorted(lost)])
            return


def _left_any(store: PackedStore, run: str) -> bool:
    """Whether a pack has more of a run than its log, and can be read."""
    try:
        return any(_is_series(key) for key in store.packed(run))
    except DamagedError:
        return False


def _log_alone(store: PackedStore, run: str) -> bytes:
    return encode_chunk([held for held in store.packed(run).values() if not _is_series(held.key)])


def _is_packed(seal: Seal | None, run: str, head: int) -> bool:
    return seal is not None and run in seal.rows and seal.rows[run].head == head


def _untouched(store: PackedStore, job: Job, newest: Iterable[str]) -> int:
    """How many runs nobody has had yet, and still may."""
    had = {log.index_of(run) for run in [*newest, *sweeps.trashed(store, job.name)]}
    return sum(index not in had for index in job.indices())


def _ends(store: PackedStore, sweep: str) -> dict[str, dict[int, float]]:
    """run → numbers of the copies of its ends, and when each was written."""
    ends: dict[str, dict[int, float]] = {}
    for entry in store.list(layout.ends(sweep)):
        if layout.is_log_entry(entry.key):
            run, k = layout.split_log_entry(entry.key)
            ends.setdefault(run, {})[k] = entry.modified
    return ends


def _read(store: PackedStore, sweep: str, run: str, head: int, ends: Mapping[int, float]) -> _Ready | None:
    """A run with all that it left; None if it has not ended, `_DAMAGED` if it cannot be read."""
    if covered_keys.sweep_of(run) != sweep:  # copied here by hand: its metrics are those of another sweep
        return _DAMAGED
    try:
        entries = [_entry(store, layout.log_entry(sweep, run, k)) for k in range(1, head + 1)]
        records = [log.parse_entry(entry.data, entry.key) for entry in entries]
        if not fold(records).ended:
            return None
        copied = tuple(sorted({*ends, head} & {*range(1, head + 1)}))  # whoever finds none writes it
        copies = [_copy(entries[k - 1], layout.end(sweep, run, k), ends.get(k)) for k in copied]
        series = _series(store, run, head)
        chunk = encode_chunk([*entries, *copies, *(series or ())])
        decode_chunk(chunk, run)  # what no reader would take is not packed
    except (DamagedError, NewerFormatError, NotFound):
        return _DAMAGED
    return _Ready(run, head, copied, series is not None, chunk)


def _entry(store: PackedStore, key: str) -> PackedObject:
    blob = store.get(key)
    return PackedObject(key, blob.data, blob.etag, float(log.parse_entry(blob.data, key).get("at") or 0.0))


def _copy(entry: PackedObject, key: str, written: float | None) -> PackedObject:
    return entry._replace(key=key, modified=entry.modified if written is None else written)


def _series(store: PackedStore, run: str, head: int) -> list[PackedObject] | None:
    """Metrics, output and environments of the attempts up to an entry; None if that is too much."""
    listed = [entry for entry in store.list(layout.run(run)) if _number(entry.key) <= head]
    if sum(entry.size for entry in listed) > LARGE:
        return None
    return [PackedObject(e.key, store.get(e.key).data, e.etag, e.modified) for e in listed]


def _number(key: str) -> int:
    place = covered_keys.place(key)
    return place.number if place else 1 << 60


def _is_series(key: str) -> bool:
    place = covered_keys.place(key)
    return place is not None and place.series


_DAMAGED = _Ready("", 0, (), False, b"")


class _Packs:
    """Packs of one packer, under names of its own, until a seal names them."""

    def __init__(self, store: PackedStore, sweep: str) -> None:
        self._store, self._sweep, self._own = store, sweep, os.urandom(8).hex()
        self._parts, self._size, self._names = [HEAD], len(HEAD), list[str]()
        self.rows: list[Where] = []

    def add(self, ready: _Ready) -> None:
        name = f"{self._own}-{layout.number(len(self._names) + 1)}"
        chunk = ready.chunk
        self.rows.append(Where(ready.run, ready.head, ready.ends, ready.whole, name, self._size, len(chunk)))
        self._parts.append(chunk)
        self._size += len(chunk)
        if self._size >= BYTES:
            self.flush()

    def flush(self) -> None:
        if len(self._parts) > 1:
            self._names.append(f"{self._own}-{layout.number(len(self._names) + 1)}")
            try:
                self._store.inner.put(layout.pack(self._sweep, self._names[-1]), b"".join(self._parts))
            except StoreError:  # a full disk gets its room back
                with suppress(StoreError):
                    self.discard()
                raise
            self._parts, self._size = [HEAD], len(HEAD)

    def discard(self) -> None:
        self._store.inner.delete(*[layout.pack(self._sweep, name) for name in self._names])


class _NextSeal:
    """The place of the seal that a packer makes of what it reads from now on."""

    def __init__(self, store: PackedStore, sweep: str) -> None:
        self.sweep = sweep
        self.submission = submission(store.inner, sweep)
        self.number = 1 + max((n for n, _ in numbered_seals(store.inner, sweep)), default=0)
        store.look(sweep)
        self.after = store.sealed_whole(sweep)  # the seal before it


def _seal(store: PackedStore, place: _NextSeal, made: _Packs) -> bool:
    """Make the packs count; False if another packer was faster, or the sweep is not the one that was read."""
    made.flush()
    inner, sweep, now = store.inner, place.sweep, {row.run: row for row in made.rows}
    before = place.after.rows if place.after else {}
    rows = [row for run, row in before.items() if run not in now] + made.rows
    seal = encode_seal(sweep, sorted(rows), place.submission)
    try:
        decode_seal(seal, layout.seal(sweep, place.number), sweep, place.number, "")
    except DamagedError:  # what no reader would take does not count
        made.discard()
        raise
    if submission(inner, sweep) == place.submission:
        inner.put(layout.packed_spec(sweep), encode({"format": REFUSED, "kind": "packed"}))
        if inner.put(layout.seal(sweep, place.number), seal, if_absent=True):
            store.look(sweep)
            return True
    made.discard()
    return False


def _wait(store: PackedStore, seal: Seal, wait: Callable[[float], None]) -> None:
    """Until no look from before the seal holds. By the store's clock: another may have sealed, and died."""
    key = layout.seal(seal.sweep, seal.number)
    sealed = max((entry.modified for entry in store.inner.list(key)), default=math.inf)
    rest = sealed + PAUSE - store_time(store.inner)
    if rest > 0:
        wait(min(rest, PAUSE))


def _covered(entries: Iterable[Entry], seal: Seal) -> dict[str, list[str]]:
    """run → keys of objects that a seal covers."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        place = covered_keys.place(entry.key)
        if place is not None and seal.covers(place):
            found.setdefault(place.run, []).append(entry.key)
    return found


def _delete(store: PackedStore, keys: Sequence[str]) -> int:
    store.inner.delete(*keys)
    return len(keys)


def _drop_packs(store: PackedStore, seal: Seal) -> None:
    """Packs that no seal names any more, and that no packer can be about to name: whoever wrote one before
    this seal came has looked before it too, and finds it in the place of its own."""
    prefix, key = layout.packs(seal.sweep), layout.seal(seal.sweep, seal.number)
    others = [e for e in store.inner.list(prefix) if e.key.removeprefix(prefix) not in seal.packs]
    if others and _holds(store, seal):
        sealed = max((entry.modified for entry in store.inner.list(key)), default=0.0)
        old = min(sealed, store_time(store.inner) - FORGOTTEN)
        store.inner.delete(*[entry.key for entry in others if entry.modified < old])


def _each(store: PackedStore, given: Iterable[One], work: Callable[[One], Two]) -> Iterator[Two]:
    """What comes of each, in order: several at a time where the store is far away. A run may have left much:
    no more of them are held than are asked for."""
    if is_folder(store.url):
        yield from map(work, given)
        return
    ahead = deque[Future[Two]]()
    with ThreadPoolExecutor(THREADS) as pool:
        for item in given:
            ahead.append(pool.submit(work, item))
            if len(ahead) >= 2 * THREADS:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()


def _batches(given: Iterable[One]) -> Iterator[list[One]]:
    rest = iter(given)
    while some := list(islice(rest, TOGETHER)):
        yield some
