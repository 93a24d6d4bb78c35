"""Bytes of packs and seals.

    pack:  "HSTP" · u16 format · u16 0 · chunks, one for each run
    chunk: zlib of: u32 length of its header · header (JSON: key, size, etag, time of each) · objects' bytes
    seal:  "HSTL" · u16 format · u16 0 · zlib of JSON: which runs are packed, up to which entry, and where

A chunk is found by its seal alone. A seal names all packs of its sweep, those of earlier seals too.
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
from itertools import chain
from typing import Any, NamedTuple

from hostler.errors import DamagedError, NewerFormatError
from hostler.records import layout
from hostler.records.body import LAST, parse, taken_apart
from hostler.records.packs.covered_keys import RecordPlace
from hostler.spec.names import is_part

FORMAT = 1
LARGEST = 256 << 20  # bytes that a chunk or a seal may unpack to
ENTRIES = 1_000_000  # of the logs in a pack, and 200 for each run: names of more are not made

COLUMNS = ("runs", "heads", "ends", "whole", "pack", "start", "size")  # of a seal, as `Where` has them
NUMBERS = ("heads", "whole", "pack", "start", "size")

_PACK, _SEAL = b"HSTP", b"HSTL"
_PREFIX = struct.Struct("<4sHH")
_LENGTH = struct.Struct("<I")
HEAD = _PREFIX.pack(_PACK, FORMAT, 0)


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
    plain = _inflated(data, key)
    packed_objects = {}
    with taken_apart(key):
        at = _LENGTH.size + _LENGTH.unpack_from(plain)[0]
        for name, size, etag, modified in json.loads(plain[_LENGTH.size : at]):
            if type(name) is not str or type(size) is not int or not 0 <= size <= len(plain) - at:
                raise ValueError(name)
            if not -LAST < modified < LAST:
                raise ValueError(modified)
            packed_objects[name] = PackedObject(name, plain[at : at + size], str(etag), float(modified))
            at += size
    return packed_objects


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
    record = parse(_inflated(data[_PREFIX.size :], key), key)
    with taken_apart(key):
        columns, submission = _checked_columns(record), str(record.get("submission") or "")
        return Seal(sweep, number, stamp, record["packs"], columns, submission)


def _checked_columns(record: Mapping[str, Any]) -> dict[str, list[Any]]:
    columns = {name: record[name] for name in COLUMNS}
    names, runs = record["packs"], columns["runs"]
    if not all(map(is_part, names)) or not layout.are_runs(runs) or runs != sorted({*runs}):
        raise ValueError(names)
    if {*map(type, columns.values()), *map(type, columns["ends"])} != {list} and runs:
        raise ValueError(runs)
    if {*map(len, columns.values())} != {len(runs)}:
        raise ValueError(len(runs))
    for numbers in (*map(columns.__getitem__, NUMBERS), [*chain.from_iterable(columns["ends"])]):
        if {*map(type, numbers)} - {int} or min(numbers, default=0) < 0:
            raise ValueError(runs)
    if max(columns["pack"], default=-1) >= len(names):
        raise ValueError(names)
    if sum(columns["heads"]) > ENTRIES + 200 * len(runs):
        raise ValueError(len(runs))
    return columns


def _inflated(data: bytes, key: str) -> bytes:
    unpacking = zlib.decompressobj()
    try:
        plain = unpacking.decompress(data, LARGEST)
    except zlib.error:
        raise DamagedError(f"{key} is damaged: its bytes do not unpack") from None
    if not unpacking.eof:
        raise DamagedError(f"{key} is damaged: its bytes do not end where they should")
    return plain
