"""Seals: which runs of a sweep are packed, up to which entry, and where; and their bytes.

    of few runs:   "HSTL" · u16 1 · u16 0 · zlib of JSON: facts of the seal, and columns
    of more:       "HSTL" · u16 2 · u16 0 · u32 length · head of that length · pieces
      head:        zlib of JSON: facts of the seal, and of each piece its first run, runs, entries and bytes
      piece:       zlib of JSON: columns of `PIECE` runs, the last of fewer

A seal names all packs of its sweep, those of earlier seals too. Whoever asks about one run of a million reads
the head and one piece; a head has fifteen bytes for each piece. Bytes that anybody may have written take
memory for what is there alone, as in `pack_format.py`: a piece that is not the last has many runs, or it is
damaged.
"""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import accumulate, chain, pairwise
from typing import Any, NamedTuple, Protocol

from hostler.errors import DamagedError, NewerFormatError
from hostler.records import layout
from hostler.records.body import parse, taken_apart
from hostler.records.packs.covered_keys import RecordPlace
from hostler.records.packs.pack_format import LARGEST, Spare, Unpacking, Where
from hostler.spec.names import is_part

FORMAT = 2
PIECE = 2000  # runs of a piece; a seal of no more has format 1
LEAST = 1000  # runs of a piece that is not the last
AT_ONCE = 64 << 10  # bytes of a seal that are read first: all of most, and the head of one of millions
ALONE = 2  # pieces that are read one by one: whoever asks for more asks for all
DIGITS = 999_999  # of the number of an entry: keys in their order are entries in theirs
ENTRIES = 200_000  # of the logs that a seal names, and 20 for each run: names of more are not made

COLUMNS = ("runs", "heads", "ends", "whole", "pack", "start", "size")  # of a seal, as `Where` has them
NUMBERS = ("heads", "whole", "pack", "start", "size")

_PREFIX = struct.Struct("<4sHH")
_LENGTH = struct.Struct("<I")
_MAGIC = b"HSTL"
_SPARE = Spare(text=64 << 10, lists=100, values=10_000)  # of a piece
_PIECES = ("firsts", "counts", "entries", "bytes")  # columns of a head

Columns = Mapping[str, list[Any]]
Read = Callable[[int, int], bytes]  # bytes of a seal, from the first to before the last


class Pieces(Protocol):
    """The columns of a seal, in pieces whose runs follow each other."""

    firsts: Sequence[str]  # run of each
    count: int  # runs of all

    def piece(self, at: int) -> Columns: ...


class Seal:
    """The packed runs of a sweep, by column: of a million, few are asked for one by one."""

    def __init__(
        self, sweep: str, number: int, stamp: str, packs: Sequence[str], pieces: Pieces, submission: str = ""
    ) -> None:
        """`submission`: that of the sweep, of which another of the same name may follow."""
        self.sweep, self.number, self.stamp, self.submission = sweep, number, stamp, submission
        self.packs, self.count, self._pieces, self._is_read = packs, pieces.count, pieces, False

    @cached_property
    def rows(self) -> dict[str, Where]:
        """run → where it is, of all."""
        return {
            columns["runs"][at]: self._row(columns, at)
            for columns in self._every()
            for at in range(len(columns["runs"]))
        }

    def row(self, run: str) -> Where | None:
        if (number := bisect_right(self._pieces.firsts, run) - 1) < 0:
            return None
        columns = self._pieces.piece(number)
        runs = columns["runs"]
        at = bisect_left(runs, run)
        return self._row(columns, at) if at < len(runs) and runs[at] == run else None

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
        ended, found = base == layout.ends(self.sweep), list[str]()
        rest, begin = prefix[len(base) :], after[len(base) :] if after.startswith(base) else ""
        for columns in self._from(rest, begin):
            runs, heads, ends = columns["runs"], columns["heads"], columns["ends"]
            for at in _from(runs, rest, begin):
                numbers = ends[at] if ended else range(1, heads[at] + 1)
                found += [f"{base}{runs[at]}-{layout.number(k)}.json" for k in numbers]
        if prefix == base and not after:
            return found
        return [key for key in found if key.startswith(prefix) and key > after]

    def read(self) -> Seal:
        """Read what was not read of it yet. DamagedError if two runs are in one place: else one chunk could
        be read, and written anew, for each of many."""
        if not self._is_read:
            places = (zip(each["pack"], each["start"], each["size"], strict=True) for each in self._every())
            for one, two in pairwise(sorted(chain.from_iterable(places))):
                if one[0] == two[0] and one[1] + one[2] > two[1]:
                    key = layout.seal(self.sweep, self.number)
                    raise DamagedError(f"{key} is damaged: it has two runs in one place")
            self._is_read = True
        return self

    def _every(self) -> Iterator[Columns]:
        return map(self._pieces.piece, range(len(self._pieces.firsts)))

    def _from(self, rest: str, after: str) -> Iterator[Columns]:
        """Pieces with runs whose keys may begin with `rest` and come after `after`."""
        firsts = self._pieces.firsts
        first = max(0, bisect_left(firsts, max(rest, after)) - 1)
        for number in range(first, len(firsts)):
            if firsts[number][: len(rest)] > rest:
                return
            yield self._pieces.piece(number)

    def _row(self, columns: Columns, at: int) -> Where:
        run, head, ends, whole, pack, start, size = (columns[name][at] for name in COLUMNS)
        return Where(run, head, tuple(ends), bool(whole), self.packs[pack], start, size)


def _from(runs: Sequence[str], rest: str, after: str) -> Iterator[int]:
    """Places of runs whose keys may begin with `rest` and come after `after`: these, and perhaps one more."""
    for at in range(max(0, bisect_left(runs, max(rest, after)) - 1), len(runs)):
        if runs[at][: len(rest)] > rest:
            return
        yield at


class _OnePiece:
    def __init__(self, columns: Columns) -> None:
        self._columns, self.count = columns, len(columns["runs"])
        self.firsts: Sequence[str] = columns["runs"][:1]

    def piece(self, at: int) -> Columns:
        return self._columns


class _StoredPieces:
    """Pieces that are read when they are asked for. Of two threads that ask for one, both may read it."""

    def __init__(self, head: _Head, begun: bytes, read: Read) -> None:
        """`begun`: bytes with which the seal begins."""
        self.firsts: Sequence[str] = head.firsts
        self.count = sum(head.counts)
        self._head, self._read = head, read
        self._block = (0, begun)  # bytes that were read last, and where they begin
        self._known: dict[int, Columns] = {}

    def piece(self, at: int) -> Columns:
        if at not in self._known:
            head = self._head
            self._known[at] = head.columns(at, self._bytes(head.starts[at], head.starts[at + 1]))
        return self._known[at]

    def _bytes(self, start: int, end: int) -> bytes:
        first, block = self._block
        if not first <= start <= end <= first + len(block):
            many = len(self._known) >= ALONE
            first, block = start, self._read(start, self._head.starts[-1] if many else end)
            self._block = first, block
        return block[start - first : end - first]


class _Head(NamedTuple):
    """Facts of a seal in pieces; by piece: its first run, and how many runs and entries of logs it has."""

    key: str
    sweep: str
    packs: list[str]
    firsts: list[str]
    counts: list[int]
    entries: list[int]
    starts: list[int]  # where each begins; then the seal's length

    def columns(self, at: int, data: bytes) -> Columns:
        record = parse(Unpacking(data, self.key, _SPARE).text(), self.key)
        with taken_apart(self.key):
            columns = _checked_columns(record, self.packs, self.sweep)
            runs, after = columns["runs"], self.firsts[at + 1 : at + 2]
            if len(runs) != self.counts[at] or runs[0] != self.firsts[at] or runs[-1:] >= (after or ["~"]):
                raise ValueError(runs[:1])
            if sum(columns["heads"]) != self.entries[at]:
                raise ValueError(self.entries[at])
            return columns


def encode_seal(sweep: str, rows: Sequence[Where], submission: str = "") -> bytes:
    packs = sorted({row.pack for row in rows})
    record = {
        "format": 1 if len(rows) <= PIECE else FORMAT,
        "token": os.urandom(8).hex(),
        "at": round(time.time(), 3),
        "sweep": sweep,
        "submission": submission,
        "packs": packs,
    }
    numbers = {name: n for n, name in enumerate(packs)}
    if len(rows) <= PIECE:
        return _PREFIX.pack(_MAGIC, 1, 0) + _packed({**record, **_columns(rows, numbers)})
    batches = [rows[at : at + PIECE] for at in range(0, len(rows), PIECE)]
    pieces = [_packed(_columns(batch, numbers)) for batch in batches]
    record["firsts"] = [batch[0].run for batch in batches]
    record["counts"] = [len(batch) for batch in batches]
    record["entries"] = [sum(row.head for row in batch) for batch in batches]
    record["bytes"] = [len(piece) for piece in pieces]
    head = _packed(record)
    return b"".join([_PREFIX.pack(_MAGIC, FORMAT, 0), _LENGTH.pack(len(head)), head, *pieces])


def _columns(rows: Sequence[Where], packs: Mapping[str, int]) -> dict[str, list[Any]]:
    return {
        "runs": [row.run for row in rows],
        "heads": [row.head for row in rows],
        "ends": [list(row.ends) for row in rows],
        "whole": [int(row.whole) for row in rows],
        "pack": [packs[row.pack] for row in rows],
        "start": [row.start for row in rows],
        "size": [row.size for row in rows],
    }


def _packed(record: Mapping[str, Any]) -> bytes:
    return zlib.compress(json.dumps(record, separators=(",", ":")).encode(), 6)


def decode_seal(data: bytes, key: str, sweep: str, number: int, stamp: str) -> Seal:
    """The seal of these bytes, all of which are read and checked."""
    return open_seal(lambda start, end: data[start:end], len(data), key, sweep, number, stamp).read()


def open_seal(read: Read, size: int, key: str, sweep: str, number: int, stamp: str) -> Seal:
    """The seal of so many bytes, which are read when they are asked for. Where all were read at once, or it
    has format 1, it is checked whole; else each piece when it is read."""
    begun = read(0, AT_ONCE)
    if len(begun) < _PREFIX.size or begun[:4] != _MAGIC:
        raise DamagedError(f"{key} is not a seal of packed runs")
    form = _PREFIX.unpack_from(begun)[1]
    if form > FORMAT:
        raise NewerFormatError(f"{key} was written by a newer hostler", "upgrade: pip install -U hostler")
    if form < FORMAT:
        return _of_one_piece(begun if len(begun) >= size else read(0, size), key, sweep, number, stamp)
    with taken_apart(key):
        begin = _PREFIX.size + _LENGTH.size
        end = begin + _LENGTH.unpack_from(begun, _PREFIX.size)[0]
        if end > size:
            raise ValueError(end)
        if end > len(begun):
            begun = read(0, end)
    record = parse(Unpacking(begun[begin:end], key).text(), key)
    with taken_apart(key):
        head = _checked_head(record, key, sweep, end, size)
        submission = str(record.get("submission") or "")
    return Seal(sweep, number, stamp, head.packs, _StoredPieces(head, begun, read), submission)


def _of_one_piece(data: bytes, key: str, sweep: str, number: int, stamp: str) -> Seal:
    record = parse(Unpacking(data[_PREFIX.size :], key).text(), key)
    with taken_apart(key):
        _check_packs(record["packs"])
        columns = _checked_columns(record, record["packs"], sweep)
        _check_entries(sum(columns["heads"]), len(columns["runs"]))
        submission = str(record.get("submission") or "")
        return Seal(sweep, number, stamp, record["packs"], _OnePiece(columns), submission).read()


def _checked_head(record: Mapping[str, Any], key: str, sweep: str, begin: int, size: int) -> _Head:
    names, columns = record["packs"], [record[name] for name in _PIECES]
    firsts, counts, entries, lengths = columns
    _check_packs(names)
    if {*map(type, columns)} != {list} or len({*map(len, columns)}) != 1:
        raise ValueError(columns)
    _check_runs(firsts, sweep)
    for numbers in columns[1:]:
        if {*map(type, numbers)} != {int} or min(numbers) <= 0:
            raise ValueError(numbers)
    if min(counts[:-1], default=LEAST) < LEAST:
        raise ValueError(counts)
    _check_entries(sum(entries), sum(counts))
    starts = [*accumulate(lengths, initial=begin)]
    if starts[-1] != size:
        raise ValueError(size)
    return _Head(key, sweep, names, firsts, counts, entries, starts)


def _checked_columns(record: Mapping[str, Any], packs: Sequence[str], sweep: str) -> Columns:
    columns = {name: record[name] for name in COLUMNS}
    runs = columns["runs"]
    _check_runs(runs, sweep)
    if {*map(type, columns.values()), *map(type, columns["ends"])} != {list} and runs:
        raise ValueError(runs)
    if {*map(len, columns.values())} != {len(runs)}:
        raise ValueError(len(runs))
    for numbers in (*map(columns.__getitem__, NUMBERS), [*chain.from_iterable(columns["ends"])]):
        if {*map(type, numbers)} - {int} or min(numbers, default=0) < 0:
            raise ValueError(runs)
    if max(columns["pack"], default=-1) >= len(packs) or max(columns["size"], default=0) > LARGEST:
        raise ValueError(len(runs))
    if max(columns["heads"], default=0) > DIGITS or not all(
        map(_are_ends, columns["ends"], columns["heads"])
    ):
        raise ValueError(runs)
    return columns


def _check_packs(names: Any) -> None:
    if not all(map(is_part, names)):
        raise ValueError(names)


def _check_runs(runs: Any, sweep: str) -> None:
    """ValueError unless they are runs of the sweep, in order, each once."""
    if not layout.are_runs(runs) or runs != sorted({*runs}) or {run[7:-6] for run in runs} - {f"-{sweep}-"}:
        raise ValueError(runs)


def _check_entries(entries: int, runs: int) -> None:
    if entries > ENTRIES + 20 * runs:
        raise ValueError(entries)


def _are_ends(numbers: list[int], head: int) -> bool:
    """Whether they are numbers of log entries up to the newest, in order, each once."""
    return not numbers or (numbers[0] > 0 and numbers[-1] <= head and numbers == sorted({*numbers}))
