"""Bytes of packs and seals.

    pack:  "HSTP" · u16 format · u16 0 · chunks, one for each run
    chunk: zlib of: u32 length of its header · header (JSON: key, size, etag, time of each) · objects' bytes
    seal:  "HSTL" · u16 format · u16 0 · zlib of JSON: which runs are packed, up to which entry, and where

A chunk is found by its seal alone. A seal names all packs of its sweep, those of earlier seals too.

Bytes that anybody may have written take memory for what is there alone: zlib makes a thousand bytes of one,
and JSON an object of three. Before either, sizes and counts are compared with the packed bytes. Each run has
a hash in its seal and each object an etag in its chunk, which no zlib makes small.
"""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import chain, pairwise
from typing import Any, NamedTuple

from hostler.errors import DamagedError, NewerFormatError
from hostler.records import layout
from hostler.records.body import LAST, parse, taken_apart
from hostler.records.packs import covered_keys
from hostler.records.packs.covered_keys import RecordPlace
from hostler.spec.names import is_part

FORMAT = 1
LARGEST = 128 << 20  # bytes of a chunk, packed or not
DIGITS = 999_999  # of the number of an entry: keys in their order are entries in theirs
ENTRIES = 200_000  # of the logs that a seal names, and 20 for each run: names of more are not made

COLUMNS = ("runs", "heads", "ends", "whole", "pack", "start", "size")  # of a seal, as `Where` has them
NUMBERS = ("heads", "whole", "pack", "start", "size")

_PACK, _SEAL = b"HSTP", b"HSTL"
_PREFIX = struct.Struct("<4sHH")
_LENGTH = struct.Struct("<I")
HEAD = _PREFIX.pack(_PACK, FORMAT, 0)

# What JSON may have for each packed byte, and besides. A seal of 100,000 runs: 4 to 15 bytes, 0.1 lists, 0.8
# values; 2.2 values where each run has 20 ends. A chunk: 4 texts in each list, or 6 with quotes in them.
_TEXT, _TEXT_MORE = 25, 1 << 20
_LISTS, _LISTS_MORE = 0.25, 1000
_VALUES, _VALUES_MORE = 2.5, 100_000
_QUOTES = 6  # for each list


class PackedObject(NamedTuple):
    """An object as it was before it was packed."""

    key: str
    data: bytes
    etag: str
    modified: float


class Where(NamedTuple):
    """A run in a pack: entries of its log up to `head`; if `whole`, all that the attempts up to it left."""

    run: str
    head: int
    ends: tuple[int, ...]  # numbers of the copies of its ends
    whole: bool
    pack: str
    start: int
    size: int


class Seal:
    """The packed runs of a sweep, by column: of a hundred thousand, few are asked for one by one."""

    def __init__(
        self,
        sweep: str,
        number: int,
        stamp: str,
        packs: Sequence[str],
        columns: Mapping[str, list[Any]],
        submission: str = "",
    ) -> None:
        """`columns`: of `COLUMNS`, in the order of runs; `pack` is a place among `packs`. `submission`: that
        of the sweep, of which another of the same name may follow."""
        self.sweep, self.number, self.stamp, self.submission = sweep, number, stamp, submission
        self.packs, self.runs, self._columns = packs, columns["runs"], columns

    @cached_property
    def rows(self) -> dict[str, Where]:
        """run → where it is, of all."""
        return {run: self._row(at) for at, run in enumerate(self.runs)}

    def row(self, run: str) -> Where | None:
        at = bisect_left(self.runs, run)
        return self._row(at) if at < len(self.runs) and self.runs[at] == run else None

    def covers(self, place: RecordPlace | None) -> bool:
        """Whether what is at a place is in the pack or nowhere, whatever object lies there."""
        row = self.row(place.run) if place and place.sweep == self.sweep else None
        return (
            row is not None
            and place is not None
            and place.number <= row.head
            and (row.whole or not place.series)
        )

    def log_keys(self, prefix: str, after: str) -> list[str]:
        """Keys under log/ or ends/ of the sweep that begin so and come after this one, in order."""
        base = prefix[: prefix.rindex("/") + 1]
        ended = base == layout.ends(self.sweep)
        heads, ends, found = self._columns["heads"], self._columns["ends"], []
        for at in self._from(prefix[len(base) :], after[len(base) :] if after.startswith(base) else ""):
            numbers = ends[at] if ended else range(1, heads[at] + 1)
            found += [f"{base}{self.runs[at]}-{layout.number(k)}.json" for k in numbers]
        if prefix == base and not after:
            return found
        return [key for key in found if key.startswith(prefix) and key > after]

    def _from(self, rest: str, after: str) -> Iterator[int]:
        """Places of runs whose keys may begin with `rest` and come after `after`: these, and perhaps one
        more."""
        first = max(0, bisect_left(self.runs, max(rest, after)) - 1)
        for at in range(first, len(self.runs)):
            if self.runs[at][: len(rest)] > rest:
                return
            yield at

    def _row(self, at: int) -> Where:
        run, head, ends, whole, pack, start, size = (self._columns[name][at] for name in COLUMNS)
        return Where(run, head, tuple(ends), bool(whole), self.packs[pack], start, size)


def encode_chunk(rows: Sequence[PackedObject]) -> bytes:
    header = json.dumps([[row.key, len(row.data), row.etag, row.modified] for row in rows]).encode()
    return zlib.compress(b"".join([_LENGTH.pack(len(header)), header, *(row.data for row in rows)]), 6)


def decode_chunk(data: bytes, key: str) -> dict[str, PackedObject]:
    """key → object, of the chunk of one run; the key of its pack is for the message only."""
    unpacking = _Unpacking(data, key)
    with taken_apart(key):
        header = unpacking.text(*_LENGTH.unpack(unpacking.exactly(_LENGTH.size)))
        rows, total, packed_objects = json.loads(header), 0, {}
        for name, size, _, modified in rows:
            if type(name) is not str or type(size) is not int or not 0 <= size <= LARGEST - total:
                raise ValueError(name)
            if not -LAST < modified < LAST:
                raise ValueError(modified)
            total += size
        plain, at = unpacking.last(total), 0
        for name, size, etag, modified in rows:
            packed_objects[name] = PackedObject(name, plain[at : at + size], str(etag), float(modified))
            at += size
    return packed_objects


def check_objects(packed_objects: Mapping[str, PackedObject], sweep: str, row: Where, key: str) -> None:
    """DamagedError unless these are the log of the run that a row names, and no more than what it left."""
    for name in packed_objects:
        place = covered_keys.place(name)
        if place is None or (place.sweep, place.run) != (sweep, row.run) or place.number > row.head:
            raise DamagedError(f"{key} is damaged: it has what no pack may hold of {row.run}")
    entries = (layout.log_entry(sweep, row.run, k) for k in range(1, row.head + 1))
    ends = (layout.end(sweep, row.run, k) for k in row.ends)
    if not all(map(packed_objects.__contains__, chain(entries, ends))):
        raise DamagedError(f"{key} is damaged: of the log of {row.run} it lacks an entry")


def encode_seal(sweep: str, rows: Sequence[Where], submission: str = "") -> bytes:
    packs = sorted({row.pack for row in rows})
    numbers = {name: n for n, name in enumerate(packs)}
    record = {
        "format": FORMAT,
        "token": os.urandom(8).hex(),
        "at": round(time.time(), 3),
        "sweep": sweep,
        "submission": submission,
        "packs": packs,
        "runs": [row.run for row in rows],
        "heads": [row.head for row in rows],
        "ends": [list(row.ends) for row in rows],
        "whole": [int(row.whole) for row in rows],
        "pack": [numbers[row.pack] for row in rows],
        "start": [row.start for row in rows],
        "size": [row.size for row in rows],
    }
    text = json.dumps(record, separators=(",", ":")).encode()
    return _PREFIX.pack(_SEAL, FORMAT, 0) + zlib.compress(text, 6)


def decode_seal(data: bytes, key: str, sweep: str, number: int, stamp: str) -> Seal:
    if len(data) < _PREFIX.size or data[:4] != _SEAL:
        raise DamagedError(f"{key} is not a seal of packed runs")
    if _PREFIX.unpack_from(data)[1] > FORMAT:
        raise NewerFormatError(f"{key} was written by a newer hostler", "upgrade: pip install -U hostler")
    unpacking = _Unpacking(data[_PREFIX.size :], key)
    record = parse(unpacking.text(), key)
    with taken_apart(key):
        columns, submission = _checked_columns(record, sweep), str(record.get("submission") or "")
        return Seal(sweep, number, stamp, record["packs"], columns, submission)


def _checked_columns(record: Mapping[str, Any], sweep: str) -> dict[str, list[Any]]:
    columns = {name: record[name] for name in COLUMNS}
    names, runs = record["packs"], columns["runs"]
    if not all(map(is_part, names)) or not layout.are_runs(runs) or runs != sorted({*runs}):
        raise ValueError(names)
    if {run[7:-6] for run in runs} - {f"-{sweep}-"}:
        raise ValueError(runs)
    if {*map(type, columns.values()), *map(type, columns["ends"])} != {list} and runs:
        raise ValueError(runs)
    if {*map(len, columns.values())} != {len(runs)}:
        raise ValueError(len(runs))
    for numbers in (*map(columns.__getitem__, NUMBERS), [*chain.from_iterable(columns["ends"])]):
        if {*map(type, numbers)} - {int} or min(numbers, default=0) < 0:
            raise ValueError(runs)
    if max(columns["pack"], default=-1) >= len(names):
        raise ValueError(names)
    if sum(columns["heads"]) > ENTRIES + 20 * len(runs) or max(columns["size"], default=0) > LARGEST:
        raise ValueError(len(runs))
    if max(columns["heads"], default=0) > DIGITS or not all(
        map(_are_ends, columns["ends"], columns["heads"])
    ):
        raise ValueError(runs)
    chunks = sorted(zip(columns["pack"], columns["start"], columns["size"], strict=True))
    if any(one[0] == two[0] and one[1] + one[2] > two[1] for one, two in pairwise(chunks)):
        raise ValueError("two runs in one place")
    return columns


def _are_ends(numbers: list[int], head: int) -> bool:
    """Whether they are numbers of log entries up to the newest, in order, each once."""
    return not numbers or (numbers[0] > 0 and numbers[-1] <= head and numbers == sorted({*numbers}))


class _Unpacking:
    """Bytes of a zlib stream, as many as are asked for at a time."""

    def __init__(self, data: bytes, key: str) -> None:
        self._rest, self._packed, self._key = data, len(data), key
        self._stream = zlib.decompressobj()

    def text(self, size: int | None = None) -> bytes:
        """JSON that takes no more memory than such packed bytes may: of a size, or all that there is."""
        most = _TEXT * self._packed + _TEXT_MORE
        if size is not None and size > most:
            raise self._damaged("its header is longer than it can be")
        text = self._read(most + 1) if size is None else self.exactly(size)
        if len(text) > most or not (text.isascii() and self._is_modest(text)):
            raise self._damaged("it unpacks to more than hostler writes there")
        if size is None and not self._stream.eof:
            raise self._damaged("its bytes do not end where they should")
        return text

    def exactly(self, size: int) -> bytes:
        data = self._read(size)
        if len(data) != size:
            raise self._damaged("its bytes do not end where they should")
        return data

    def last(self, size: int) -> bytes:
        """So many bytes, with which it ends."""
        data = self._read(size + 1)
        if len(data) != size or not self._stream.eof:
            raise self._damaged("its bytes do not end where they should")
        return data

    def _read(self, most: int) -> bytes:
        if most == 0:  # zlib takes it for no bound
            return b""
        try:
            data = self._stream.decompress(self._rest, most)
        except zlib.error:
            raise self._damaged("its bytes do not unpack") from None
        self._rest = self._stream.unconsumed_tail
        return data

    def _is_modest(self, text: bytes) -> bool:
        lists, values = (text.count(b"[") + text.count(b"{"), text.count(b",") + 2 * text.count(b"\\"))
        most = _LISTS * self._packed + _LISTS_MORE
        return (
            lists <= most
            and text.count(b'"') <= _QUOTES * most
            and values <= _VALUES * self._packed + _VALUES_MORE
        )

    def _damaged(self, why: str) -> DamagedError:
        return DamagedError(f"{self._key} is damaged: {why}")
