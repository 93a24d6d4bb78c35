"""A store in which the objects of packed runs are where they were, for everybody who reads or writes runs.

What a seal covers is read from its pack alone: an object that a worker writes there later, having slept
through the end of its run, stays unseen. So a covered key is never absent, and whoever creates it is told
that another's stands there.

A look at the newest seal holds for `HOLDS` seconds on the reader's own clock, and a packer deletes nothing
before `PAUSE` seconds have gone by since its seal. Whatever is read or created under a look that still holds
afterwards was therefore there, or absent, in truth; under an older look it is judged again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from heapq import merge
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hostler.errors import DamagedError, NewerFormatError
from hostler.records import layout
from hostler.records.packs import covered_keys
from hostler.records.packs.covered_keys import RecordPlace
from hostler.store import Blob, Entry, NotFound, Store
from hostler.store import base as stores
from hostler.store.registry import open_at as open_raw_at
from hostler.store.registry import open_store as open_raw

if TYPE_CHECKING:
    from hostler.records.packs.pack_format import PackedObject, Where
    from hostler.records.packs.seals import Seal

One = TypeVar("One")

HOLDS = 10.0  # seconds that a look at the newest seal is good for
PAUSE = 120.0  # seconds between a seal and the first deletion; over NFS "absent" may be a minute old
AHEAD = 256 << 10  # bytes of a pack that are read at once: the next runs are often asked for next
KEPT = 64  # runs whose objects are held,
HELD = 64 << 20  # and bytes of these, where they are of more than one
ROWS = 256  # of a listing that are judged together
LOOKS = 3  # at a seal, or a pack, that goes while it is read

_CLOCK = getattr(
    time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC
)  # it must not stand still while a laptop sleeps


def moment() -> float:
    return time.clock_gettime(_CLOCK)


def open_store(url: str, *, retry: float | None = None, shared: bool = False) -> PackedStore:
    return PackedStore(open_raw(url, retry=retry, shared=shared))


def open_at(url: str) -> PackedStore:
    """For a person, who waits less long for an answer than a worker."""
    return PackedStore(open_raw_at(url))


def seen_through(store: Store) -> PackedStore:
    return store if isinstance(store, PackedStore) else PackedStore(store)


class PackedEntry(Entry):
    """A row of a listing whose facts are read from the pack when they are asked for."""

    def __init__(self, key: str, load: Callable[[str], PackedObject]) -> None:
        self.__dict__["key"], self.__dict__["_load"] = key, load

    @property
    def size(self) -> int:
        return len(self.__dict__["_load"](self.key).data)

    @property
    def etag(self) -> str:
        return str(self.__dict__["_load"](self.key).etag)

    @property
    def modified(self) -> float:
        return float(self.__dict__["_load"](self.key).modified)


class PackedStore:
    """All methods may be called from several threads. `inner` is the store as it is."""

    def __init__(self, inner: Store, clock: Callable[[], float] = moment) -> None:
        self.inner, self.url, self._clock = inner, inner.url, clock
        self._looks: dict[str, tuple[float, Seal | None]] = {}  # sweep → when it was looked at, what was seen
        self._chunks: dict[tuple[str, str], dict[str, PackedObject]] = {}  # by pack and run
        self._sizes: dict[tuple[str, str], int] = {}  # bytes of each, the oldest first
        self._holding = threading.Lock()
        self._block: tuple[str, int, bytes] = ("", 0, b"")

    def get(self, key: str, *, start: int = 0, end: int | None = None) -> Blob:
        place = covered_keys.place(key)
        if place is None:
            return self.inner.get(key, start=start, end=end)
        if not self._covers(place):
            blob: Blob | NotFound
            try:
                blob = self.inner.get(key, start=start, end=end)
            except NotFound as error:
                blob = error
            if not self._covers(place):
                if isinstance(blob, NotFound):
                    raise blob
                return blob
        packed_object = self._packed(place, key)
        return Blob(packed_object.data[start:end], packed_object.etag)

    def get_into(self, key: str, memory: memoryview) -> int:
        if covered_keys.place(key) is None:
            return stores.get_into(self.inner, key, memory)
        data = self.get(key, end=len(memory)).data
        memory[: len(data)] = data
        return len(data)

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        place = covered_keys.place(key) if if_absent else None
        if place is None:
            return self.inner.put(key, data, if_absent=if_absent)
        if self._covers(place):
            return self._is_own(place, key, data)
        if not self.inner.put(key, data, if_absent=True):
            return False
        if not self._covers(place):  # by a look that holds now: nothing of it can have been deleted
            return True
        own = self._is_own(place, key, data)
        self.inner.delete(key)
        return own

    def list(self, prefix: str, after: str = "", *, deep: bool = True) -> Iterator[Entry]:
        sweep = covered_keys.owner(prefix)
        if not sweep:
            yield from self.inner.list(prefix, after, deep=deep)
            return
        while True:
            seal, rows = self._merged(sweep, prefix, after, deep=deep)
            while judged := list(islice(rows, ROWS)):
                if self.sealed(sweep) is not seal:
                    break  # what was read may be gone, or a late write: again from here
                yield from judged
                after = judged[-1].key
            else:
                if self.sealed(sweep) is seal:
                    return

    def keys(self, prefix: str, after: str = "") -> Iterable[str]:
        found = stores.keys(self.inner, prefix, after)
        sweep = covered_keys.owner(prefix)
        if not sweep:
            return found
        found = list(found)
        return self._of_seal(sweep, lambda seal: self._with_packed(seal, found, prefix, after), found)

    def delete(self, *keys: str) -> None:
        """A covered key is not taken out of its pack by this: a worker that slept deletes what was its."""
        self.inner.delete(*keys)
        for key in keys:
            if key.startswith(layout.SWEEPS) and "/sealed/" in key:
                self._looks.pop(key.split("/")[1], None)

    def upload(self, path: Path, key: str) -> None:
        self.inner.upload(path, key)

    def download(self, key: str, path: Path) -> None:
        place = covered_keys.place(key)
        if place is None:
            self.inner.download(key, path)
            return
        if not self._covers(place):
            try:
                self.inner.download(key, path)
            except NotFound:
                if not self._covers(place):
                    raise
            else:
                if not self._covers(place):
                    return
        with stores.arriving(path) as file:
            file.write(self._packed(place, key).data)

    def put_again(self, key: str, known: str) -> bool:
        named = getattr(self.inner, "put_again", None)
        return bool(named and named(key, known))

    def sealed(self, sweep: str) -> Seal | None:
        """The newest seal of a sweep, by a look that holds."""
        known = self._looks.get(sweep)
        return known[1] if known and self._clock() - known[0] <= HOLDS else self.look(sweep)

    def sealed_whole(self, sweep: str) -> Seal | None:
        """The newest seal, once all of it has been read: DamagedError if it cannot be."""
        return self._of_seal(sweep, lambda seal: seal.read(), None)

    def look(self, sweep: str) -> Seal | None:
        """The newest seal of a sweep, at this moment."""
        began, known = self._clock(), self._looks.get(sweep, (0.0, None))[1]
        seal = newest_seal(self.inner, sweep, known)
        if began >= self._looks.get(sweep, (began, None))[0]:  # not over a newer look of another thread
            self._looks[sweep] = (began, seal)
        return seal

    def packed(self, run: str) -> dict[str, PackedObject]:
        """key → object, of what is packed of a run."""
        sweep = covered_keys.sweep_of(run)
        for _ in range(LOOKS):
            row = self._of_seal(sweep, lambda seal: seal.row(run), None)
            if row is None:
                return {}
            known = self._chunks.get((row.pack, run))
            if known is not None:
                return known
            at = layout.pack(sweep, row.pack)
            try:
                data = self._bytes(at, row.start, row.size)
            except NotFound:
                self.look(sweep)  # a newer seal has it elsewhere
                continue
            from hostler.records.packs import pack_format  # most sweeps are not packed

            packed_objects = pack_format.decode_chunk(data, at)
            pack_format.check_objects(packed_objects, sweep, row, at)
            self._hold((row.pack, run), packed_objects)
            return packed_objects
        raise DamagedError(f"{at} is missing, and with it what {run} left", "was it deleted by hand?")

    def _hold(self, chunk: tuple[str, str], packed_objects: dict[str, PackedObject]) -> None:
        """Objects of this run are asked for next; those of runs before it go."""
        with self._holding:
            self._chunks[chunk] = packed_objects
            self._sizes[chunk] = sum(len(one.data) for one in packed_objects.values())
            while len(self._sizes) > 1 and (len(self._sizes) > KEPT or sum(self._sizes.values()) > HELD):
                oldest = next(iter(self._sizes))
                del self._sizes[oldest], self._chunks[oldest]

    def chunk(self, sweep: str, row: Where) -> bytes:
        """What is packed of a run, as it lies in its pack."""
        return self._bytes(layout.pack(sweep, row.pack), row.start, row.size)

    def _bytes(self, key: str, start: int, size: int) -> bytes:
        name, first, data = self._block
        if name != key or not first <= start <= start + size <= first + len(data):
            data = self.inner.get(key, start=start, end=start + max(size, AHEAD)).data
            first = start
            self._block = (key, start, data)
        return data[start - first : start - first + size]

    def _covers(self, place: RecordPlace) -> bool:
        return self._of_seal(place.sweep, lambda seal: seal.covers(place), False)

    def _of_seal(self, sweep: str, ask: Callable[[Seal], One], without: One) -> One:
        """What the newest seal says; that of the next, if it goes with its sweep before it is read."""
        for _ in range(LOOKS):
            seal = self.sealed(sweep)
            if seal is None:
                return without
            with suppress(NotFound):
                return ask(seal)
            self.look(sweep)
        raise DamagedError(f"{layout.seals(sweep)} has a seal that cannot be read")

    def _is_own(self, place: RecordPlace, key: str, data: bytes) -> bool:
        packed_object = self.packed(place.run).get(key)
        return packed_object is not None and packed_object.data == data

    def _packed(self, place: RecordPlace, key: str) -> PackedObject:
        packed_object = self.packed(place.run).get(key)
        if packed_object is None:
            raise NotFound(f"{key} does not exist in {self.url}")
        return packed_object

    def _merged(
        self, sweep: str, prefix: str, after: str, *, deep: bool
    ) -> tuple[Seal | None, Iterator[Entry]]:
        """Rows of a listing as the newest seal has them, and that seal: what they need of it is read."""
        rows = self.inner.list(prefix, after, deep=deep)
        plain: tuple[Seal | None, Iterator[Entry]] = (None, rows)

        def merged(seal: Seal) -> tuple[Seal | None, Iterator[Entry]]:
            own = (row for row in rows if not seal.covers(covered_keys.place(row.key)))
            packed = (PackedEntry(key, self._load) for key in self._keys(seal, prefix, after))
            return seal, merge(own, packed, key=lambda row: row.key)

        return self._of_seal(sweep, merged, plain)

    def _load(self, key: str) -> PackedObject:
        place = covered_keys.place(key)
        assert place is not None
        return self._packed(place, key)

    def _with_packed(self, seal: Seal, found: Sequence[str], prefix: str, after: str) -> Sequence[str]:
        rest = [key for key in found if not seal.covers(covered_keys.place(key))]
        packed = self._keys(seal, prefix, after)
        return sorted([*packed, *rest]) if rest else packed

    def _keys(self, seal: Seal, prefix: str, after: str) -> Sequence[str]:
        if prefix.startswith(layout.SWEEPS):
            return seal.log_keys(prefix, after)
        run = prefix.split("/")[1]
        row = seal.row(run)
        packed_objects = self.packed(run) if row and row.whole else {}
        return sorted(key for key in packed_objects if key.startswith(prefix) and key > after)


def newest_seal(store: Store, sweep: str, known: Seal | None = None) -> Seal | None:
    """The newest seal of the sweep in a store as it is; `known` if that is it. One of another sweep that had
    the name before, whose packer slept through its deletion, is passed over."""
    while True:
        for number, entry in sorted(numbered_seals(store, sweep), key=lambda row: -row[0]):
            if known is not None and known.stamp == f"{entry.key} {entry.etag}":
                return known
            from hostler.records.packs.seals import open_seal  # most sweeps are not packed

            try:
                read = partial(_read, store, entry)
                seal = open_seal(read, entry.size, entry.key, sweep, number, f"{entry.key} {entry.etag}")
            except NotFound:  # the sweep is being deleted
                break
            if are_same(seal.submission, submission(store, sweep)):
                return seal
        else:
            return None


def _read(store: Store, entry: Entry, start: int, end: int) -> bytes:
    """Bytes of the object that was listed; NotFound if it is another now."""
    blob = store.get(entry.key, start=start, end=None if end >= entry.size else end)
    if blob.etag != entry.etag:
        raise NotFound(f"{entry.key} was written anew in {store.url}")
    return blob.data


def numbered_seals(store: Store, sweep: str) -> list[tuple[int, Entry]]:
    """Seals under the name of a sweep, with their numbers."""
    listed = [(layout.numbers(_name(entry.key)), entry) for entry in store.list(layout.seals(sweep))]
    return [(numbers[0], entry) for numbers, entry in listed if numbers]


def submission(store: Store, sweep: str) -> str:
    """Names a sweep, and no other of its name; '' if nobody can tell, as while it is being deleted."""
    from hostler.records.sweep import sweeps

    try:
        return sweeps.submission(store, sweep)
    except (NotFound, DamagedError, NewerFormatError):
        return ""


def are_same(one: str, other: str) -> bool:
    """Whether two submissions may be the same."""
    return one == other or "" in (one, other)


def check(store: Store, sweep: str) -> None:
    """DamagedError or NewerFormatError if nobody can tell what is packed of a sweep."""
    if isinstance(store, PackedStore):
        store.sealed_whole(sweep)


def _name(key: str) -> str:
    return key.rsplit("/", 1)[1]
