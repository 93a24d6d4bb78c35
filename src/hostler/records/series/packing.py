"""Packs ended runs that are in no segment of their sweep, from the runs' own objects."""

from __future__ import annotations

import mmap
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any

from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import HINT, Record, taken_apart
from hostler.records.run import log
from hostler.records.run.log import RunKey
from hostler.records.series import metrics, segments
from hostler.records.series.points import Point
from hostler.records.series.segments import PackedRun, Segment
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import Entry, NotFound, Store
from hostler.store.base import get_into
from hostler.store.registry import is_folder

RUNS = 100  # in a segment
BYTES = 16 << 20  # or so many
SEVERAL, LONG = 4, 128 << 10  # segments, and bytes of one, from which they are fetched ahead
BLOCK = 64 << 20  # bytes of memory for many of a folder
FAR, NEAR = 8, 2  # how many at a time: of a bucket, of a folder
ANY = 1 << 30  # an attempt that comes after all others

Fetched = tuple[str, Callable[[], bytes | memoryview]]  # a key, and what returns its bytes or raises


@dataclass(frozen=True)
class Coverage:
    """The segments of a sweep, and which row of which one stands for each run that has one."""

    segments: Mapping[int, Segment]
    rows: Mapping[str, tuple[int, int]]  # run → number of the segment, row in it


def covered(known: Mapping[int, Segment], newest: Mapping[str, int]) -> Coverage:
    """Which rows stand: those that hold the end which is the newest entry. Pure."""
    rows = {}
    for n, segment in known.items():
        for row, (run, k) in enumerate(zip(segment.runs, segment.ks, strict=True)):
            if newest.get(run) == k:
                rows[run] = (n, row)
    return Coverage(known, rows)


def read(
    store: Store, sweep: str, known: Iterable[int] = (), say: Callable[[str], None] = lambda line: None
) -> dict[int, Segment]:
    """All segments but those with these numbers. One that is damaged is said, and passed over: a segment is
    only a copy."""
    return begin(store, sweep, known)(say)


def begin(
    store: Store, sweep: str, known: Iterable[int] = ()
) -> Callable[[Callable[[str], None]], dict[int, Segment]]:
    """What returns the same: many long ones of a folder are read meanwhile, by a thread."""
    entries = _entries(store, sweep, known)
    together = is_folder(store.url) and len(entries) >= SEVERAL and entries[0].size > LONG
    fetched = _together(store, entries) if together else _fetched(store, entries)
    return lambda say: dict(_decoded(fetched, say))


def each(
    store: Store, sweep: str, known: Iterable[int] = (), say: Callable[[str], None] = lambda line: None
) -> Iterator[tuple[int, Segment]]:
    """The same one by one: but for a few that are fetched ahead, none is held that the reader lets go."""
    return _decoded(_fetched(store, _entries(store, sweep, known)), say)


def _entries(store: Store, sweep: str, known: Iterable[int]) -> list[Entry]:
    have = {0, *known}
    return [
        entry for entry in store.list(layout.segments(sweep)) if segments.number_of(entry.key) not in have
    ]


def _decoded(fetched: Iterable[Fetched], say: Callable[[str], None]) -> Iterator[tuple[int, Segment]]:
    for key, data in fetched:
        try:
            segment = segments.decode(data(), key)
            segment.check_facts(key)
            yield segments.number_of(key), segment
        except NotFound:  # deleted right now
            continue
        except (DamagedError, NewerFormatError) as error:
            say(str(error))


def _together(store: Store, wanted: Sequence[Entry]) -> Iterator[Fetched]:
    """Many in one block of memory: taken piece by piece it costs more than to read what comes into it."""
    from concurrent.futures import ThreadPoolExecutor  # small stores do without

    left, place = sum(map(_room, wanted)), memoryview(b"")
    reads: list[Callable[[], bytes | memoryview]] = []
    for entry in wanted:
        room = _room(entry)
        if room > len(place):
            place = memoryview(_memory(min(left, BLOCK)))
        mine = partial(_filled, place=place[: entry.size]) if room else _whole
        reads.append(partial(mine, store, entry.key))
        place, left = place[room:], left - room
    pool = ThreadPoolExecutor(1)
    futures = [pool.submit(read) for read in reads]
    pool.shutdown(wait=False)
    return ((entry.key, future.result) for entry, future in zip(wanted, futures, strict=True))


def _room(entry: Entry) -> int:
    """Bytes of a block that it takes; 0 for one that does not go into a block."""
    room = -(-entry.size // 64) * 64
    return room if room <= BLOCK else 0


def _whole(store: Store, key: str) -> bytes:
    return store.get(key).data


def _filled(store: Store, key: str, place: memoryview) -> memoryview:
    return place[: get_into(store, key, place)]


def _memory(size: int) -> mmap.mmap:
    """Memory that nobody has touched, in large pages where the machine has them."""
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    try:
        block.madvise(mmap.MADV_HUGEPAGE)
    except (AttributeError, OSError):
        pass
    return block


def _fetched(store: Store, wanted: Sequence[Entry]) -> Iterator[Fetched]:
    """Several at a time where one alone takes long."""
    far = not is_folder(store.url)
    if len(wanted) < SEVERAL or not (far or wanted[0].size > LONG):
        yield from ((entry.key, partial(_whole, store, entry.key)) for entry in wanted)
        return
    from concurrent.futures import ThreadPoolExecutor  # small stores do without

    with ThreadPoolExecutor(FAR if far else NEAR) as pool:
        rest = iter(wanted)
        ahead = deque(
            (entry.key, pool.submit(_whole, store, entry.key)) for entry in islice(rest, FAR if far else NEAR)
        )
        while ahead:
            key, future = ahead.popleft()
            yield key, future.result
            ahead.extend((entry.key, pool.submit(_whole, store, entry.key)) for entry in islice(rest, 1))


def ends(
    store: Store,
    sweep: str,
    newest: Mapping[str, int],
    say: Callable[[str], None] = lambda line: None,
    *,
    ranked_by: str | None = None,
) -> dict[str, Record]:
    """run → its end, of those that are in a segment and whose newest entry is that end: with the last value
    of each metric, and all that is known of the one that runs are ranked by."""
    found: dict[str, Record] = {}
    whole = () if ranked_by is None else (ranked_by,)
    for segment in read(store, sweep, say=say).values():
        for run, k, end in zip(segment.runs, segment.ks, segment.ends(("last",), whole), strict=True):
            if newest.get(run) == k:
                found[run] = end
    return found


class PackedRuns:
    """Ends and parameters of the runs of a sweep that stand in its segments; to look parameters up is much
    quicker than to draw them again. A segment is read when a run is asked for that is in none before it, and
    unpacked when one of its own is: who goes through the runs in their order has the first of them before the
    last segment is read. Several threads may ask once `count` was."""

    def __init__(
        self, store: Store, sweep: str, newest: Mapping[str, int], ranked_by: str | None = None
    ) -> None:
        """`ranked_by`: the metric of which all that is known is unpacked, not the last value alone."""
        self._sweep, self._whole = sweep, () if ranked_by is None else (ranked_by,)
        self._newest, self._unread = newest, each(store, sweep)
        self._segments: dict[int, Segment] = {}
        self._rows: dict[str, tuple[int, int]] = {}  # run → number of its segment, row in it
        self._unpacked: dict[int, list[tuple[Record, dict[str, Any]]]] = {}

    def count(self) -> int:
        """How many runs there are: all segments are read."""
        while self._read_next():
            pass
        return len(self._rows)

    def of(self, run: str) -> tuple[Record, dict[str, Any]] | None:
        """The run's end, with the last value of each metric, and its parameters with dotted keys; None if it
        is in no segment that can be read."""
        if run not in self._newest:
            return None
        while run not in self._rows and self._read_next():
            pass
        n, row = self._rows.get(run, (0, 0))
        if n and n not in self._unpacked:
            self._unpacked[n] = self._unpack(n, self._segments[n])
        return self._unpacked[n][row] if self._unpacked.get(n) else None

    def _read_next(self) -> bool:
        """Whether there was another segment."""
        found = next(self._unread, None)
        if found is None:
            return False
        n, segment = found
        self._segments[n] = segment
        self._rows.update(covered({n: segment}, self._newest).rows)
        return True

    def _unpack(self, n: int, segment: Segment) -> list[tuple[Record, dict[str, Any]]]:
        try:
            with taken_apart(layout.segment(self._sweep, n)):
                return list(zip(segment.ends(("last",), self._whole), segment.params(), strict=True))
        except DamagedError:  # only a copy: the runs' own objects are read
            return []


def end_of(store: Store, key: RunKey, k: int) -> Record | None:
    """Entry k, if it is an end."""
    at = layout.log_entry(key.sweep, key.run, k)
    try:
        entry = log.parse_entry(store.get(at).data, at)
    except NotFound:
        return None
    if any(part not in total for total in (entry.get("metrics") or {}).values() for part in segments.PARTS):
        raise DamagedError(f"{at} is damaged: a metric of it has no {', '.join(segments.PARTS)}", HINT)
    return entry if entry["kind"] == log.END else None


def pack(store: Store, key: RunKey, k: int, end: Record, params: Mapping[str, Any]) -> PackedRun:
    """An ended run, from its own objects."""
    return segments.packed(key.run, k, end, params, points(store, key.run, end))


def points(store: Store, run: str, end: Record) -> list[Point]:
    """The curve of a run that ended so; of a copy, that of the run it is a copy of."""
    of, attempt = end.get("copy_of"), int(end.get("attempt") or 0)
    return metrics.read(store, of, ANY) if of else metrics.read(store, run, attempt)


def compact(store: Store, job: Job, *, least: int = 1, wait: Callable[[], bool] | None = None) -> int:
    """Put what is in no segment into new ones, if it is as many as `least`: how many runs that were. `wait`:
    waits a moment for others that may be writing segments; False if they are gone, and have written."""
    newest = log.heads(store, job.name)
    known = read(store, job.name)
    left, waits = _uncovered(job, known, newest), wait is not None
    while wait and waits and len(left) >= least:
        waits = wait()
        known |= read(store, job.name, known)  # once more after the last of them has gone
        left = _uncovered(job, known, newest)
    if len(left) < least:
        return 0
    count, number = 0, max(known, default=0)
    for batch in batches(_packed(store, job, left)):
        number = segments.write(store, job.name, batch, number)
        count += len(batch)
    return count


def _uncovered(job: Job, known: Mapping[int, Segment], newest: Mapping[str, int]) -> list[tuple[str, int]]:
    rows = covered(known, newest).rows
    return [(run, k) for run, k in newest.items() if run not in rows and _is_known(job, run)]


def batches(found: Iterable[PackedRun]) -> Iterator[list[PackedRun]]:
    """As many at a time as a segment takes."""
    batch: list[PackedRun] = []
    size = 0
    for run in found:
        batch.append(run)
        size += run.size
        if is_enough(len(batch), size):
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def is_enough(count: int, size: int) -> bool:
    """Whether so many runs, of so many bytes together, fill a segment."""
    return count >= RUNS or size >= BYTES


def _packed(store: Store, job: Job, left: Iterable[tuple[str, int]]) -> Iterator[PackedRun]:
    trashed = sweeps.trashed(store, job.name)
    for run, k in left:
        if run not in trashed and (packed_run := _one(store, job, RunKey(job.name, run), k)):
            yield packed_run


def _one(store: Store, job: Job, key: RunKey, k: int) -> PackedRun | None:
    """None if it has not ended, or cannot be read: readers say so of its own objects."""
    try:
        end = end_of(store, key, k)
        with taken_apart(layout.log_entry(job.name, key.run, k)):
            return pack(store, key, k, end, job.params(key.index)) if end else None
    except (DamagedError, NewerFormatError):
        return None


def _is_known(job: Job, run: str) -> bool:
    index = int(run[:7])
    return index < job.count
