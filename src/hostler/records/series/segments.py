"""Segments: many ended runs of a sweep in one object, with their parameters, ends and curves.

A segment is a copy, and decides nothing. A row of it holds the number k of the run's end: while that is the
newest entry of the run's log the row is as good as the run's own objects, and once the log has gone on the
row is void. So two workers that pack the same runs do no harm, and neither does one that never packs any:
readers take from a run's own objects what no segment has.

    "HSTS" · u16 format · u16 0 · u32 length of the header · header (JSON), padded to 8 · blocks of numbers
"""

from __future__ import annotations

import json
import os
import struct
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import nan
from typing import Any

from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import Record, parse, taken_apart
from hostler.records.run import log
from hostler.records.series import columns
from hostler.records.series.columns import Blocks, numbers, values
from hostler.records.series.curve_columns import Track, tracks
from hostler.records.series.metrics import summary
from hostler.records.series.points import Point
from hostler.spec.params import flatten
from hostler.store import Store

FORMAT = 1
CELLS = 100_000  # of a small segment, in memory
LARGE = 4 << 20  # bytes of curves; those of a larger run stay where they are

# What is kept of an end.
FACTS = (
    "state",
    "attempt",
    "attempts",
    "host",
    "step",
    "seconds",
    "total",
    "started",
    "at",
    "exit",
    "code",
    "cost",
    "copy_of",
    "failure",
    "why",
    "result",
    "notes",
    "config",
    "together",
    "kept",
    "means",
)

PARTS = ("last", "min", "max", "step")  # of a metric's totals
STEPS = ("min_step", "max_step")  # of its least and its largest value: an older hostler notes none

_MAGIC = b"HSTS"
_PREFIX = struct.Struct("<4sHHI")

Sparse = list[Any]  # [rows that have it, or None for all; their column]


@dataclass(frozen=True)
class PackedRun:
    """An ended run, ready for a segment. Without `tracks` its curves are in its own objects alone."""

    run: str
    k: int
    end: Record
    params: Mapping[str, Any]
    totals: Mapping[str, Mapping[str, float]]
    tracks: Sequence[Track] | None = field(repr=False)

    @property
    def size(self) -> int:
        return 1000 + sum(track.size for track in self.tracks or ())


def packed(
    run: str, k: int, end: Record, params: Mapping[str, Any], points: Sequence[Point] | None
) -> PackedRun:
    """`points` None: there are too many of them to be held."""
    if points is None:
        return PackedRun(run, k, end, flatten(params), end.get("metrics") or {}, None)
    found = tracks(points)
    kept = found if sum(track.size for track in found) <= LARGE else None
    totals = {**(end.get("metrics") or {}), **summary(points)}  # a moment's metrics may be in its end alone
    return PackedRun(run, k, end, flatten(params), totals, kept)


def encode(sweep: str, found: Sequence[PackedRun]) -> bytes:
    blocks = Blocks()
    header = {
        "format": FORMAT,
        "token": os.urandom(8).hex(),
        "at": round(time.time(), 3),
        "sweep": sweep,
        "rows": len(found),
        "run": blocks.column([run.run for run in found]),
        "k": blocks.integers(run.k for run in found),
        "apart": [n for n, packed_run in enumerate(found) if packed_run.tracks is None],
        "end": _tables([{name: run.end.get(name) for name in FACTS} for run in found], blocks, FACTS),
        "params": _tables([run.params for run in found], blocks),
        "totals": _totals([run.totals for run in found], blocks),
        "tracks": _tracks([run.tracks or () for run in found], blocks),
    }
    return b"".join([head(header), *blocks.parts])


def head(header: Mapping[str, Any]) -> bytes:
    """Bytes before the blocks."""
    text = json.dumps(header, separators=(",", ":"), allow_nan=True, default=str).encode()
    text += b" " * (-(len(text) + _PREFIX.size) % 8)
    return _PREFIX.pack(_MAGIC, FORMAT, 0, len(text)) + text


@dataclass(frozen=True)
class Segment:
    """A segment as it was written; what is asked for is unpacked."""

    header: Mapping[str, Any] = field(repr=False)
    blocks: memoryview = field(repr=False)

    @property
    def rows(self) -> int:
        return int(self.header["rows"])

    @cached_property
    def runs(self) -> list[str]:
        return [str(run) for run in values(self.header["run"], self.rows, self.blocks)]

    @cached_property
    def ks(self) -> list[int]:
        return numbers(self.header["k"], self.blocks).tolist()

    def check_facts(self, key: str) -> None:
        """DamagedError unless what is kept of ends is what a run's log holds: for bytes that a store gave."""
        with taken_apart(key):
            for name, (_, column) in self.header["end"].items():
                if name in log.FIELDS:
                    if column[0] in ("f", "i"):
                        log.check_block(name, numbers(column, self.blocks), key)
                    else:
                        every = column[0] == "all"
                        cells = [column[1]] if every else values(column, self.rows, self.blocks)
                        log.check_cells(name, cells, key)
            states = self.header["end"]["state"][1] if self.rows else ["j", []]
            if set(states[1] if states[0] == "j" else states[1:]) - {*log.ENDS}:
                raise ValueError(states)

    def ends(self, parts: Sequence[str] = PARTS, whole: Collection[str] = ()) -> list[Record]:
        """The end of each run, as far as it is kept, with these parts of the totals of its metrics; all that
        there are for those of `whole`. What its machine measured does not count as a metric of an end."""
        found: list[Record] = [{"kind": "end", "metrics": {}} for _ in range(self.rows)]
        for name, sparse in self.header["end"].items():
            for n, value in self._cells(sparse):
                found[n][name] = value
        for name, total in self.header["totals"].items():
            if name.startswith("system/"):
                continue
            rows = total["rows"] if total["rows"] is not None else range(self.rows)
            chosen = [part for part in (*PARTS, *STEPS) if part in total] if name in whole else parts
            cut = [numbers(total[part], self.blocks).tolist() for part in chosen]
            for n, *cells in zip(rows, *cut, strict=True):
                found[n]["metrics"][name] = dict(zip(chosen, cells, strict=True))
        return found

    def fact(self, name: str) -> list[Any]:
        """A fact of the end of each run; None where it is not kept."""
        return self._whole(*self.header["end"].get(name, ([], ["j", []])))

    def total(self, name: str, part: str) -> list[float | None]:
        """A part of the totals of a metric, by run; None where a run has not logged it."""
        total = self.header["totals"].get(name, {})
        return self._whole(total.get("rows", []), total.get(part, ["j", []]))

    def logged(self) -> dict[str, Collection[int]]:
        """metric → rows of the runs that have logged it, but for what their machines measured."""
        every = range(self.rows)
        totals = self.header["totals"].items()
        return {
            name: every if total["rows"] is None else total["rows"]
            for name, total in totals
            if not name.startswith("system/")
        }

    def _whole(self, rows: list[int] | None, column: columns.Column) -> list[Any]:
        if rows is None:
            return values(column, self.rows, self.blocks)
        found: list[Any] = [None] * self.rows
        for n, value in zip(rows, values(column, len(rows), self.blocks), strict=True):
            found[n] = value
        return found

    def params(self) -> list[dict[str, Any]]:
        """The parameters of each run, with dotted keys."""
        rows: list[dict[str, Any]] = [{} for _ in range(self.rows)]
        for name, sparse in self.header["params"].items():
            for n, value in self._cells(sparse):
                rows[n][name] = value
        return rows

    def _cells(self, sparse: Sparse) -> Iterable[tuple[int, Any]]:
        rows, column = sparse
        count = self.rows if rows is None else len(rows)
        return zip(
            range(self.rows) if rows is None else rows, values(column, count, self.blocks), strict=True
        )


def decode(data: bytes | memoryview, key: str) -> Segment:
    """The segment these bytes hold; the key is for the message only."""
    view = memoryview(data)
    if len(view) < _PREFIX.size or bytes(view[:4]) != _MAGIC:
        raise DamagedError(f"{key} is not a segment")
    _, version, _, length = _PREFIX.unpack_from(view)
    if version > FORMAT:
        raise NewerFormatError(
            f"{key} was written by a newer hostler", hint="upgrade: pip install -U hostler"
        )
    begin = _PREFIX.size + length
    if begin > len(view):
        raise DamagedError(f"{key} is not a whole segment")
    header = parse(bytes(view[_PREFIX.size : begin]), key)
    with taken_apart(key):
        _check(header, len(view) - begin, CELLS + 2 * len(view))
    return Segment(header, view[begin:])


def _check(header: Mapping[str, Any], size: int, most: int) -> None:
    """Raises unless every column has its rows in blocks of `size` bytes, and all of them together no more
    cells than `most`: what is the same in all rows takes no bytes, but memory when it is unpacked."""
    rows, cells = header["rows"], 0
    columns.check(header["k"], rows, size, "i")
    columns.check(header["run"], rows, size, "jta")
    _check_rows(header["apart"], rows)
    for part in ("end", "params"):
        for listed, column in header[part].values():
            count = rows if listed is None else _check_rows(listed, rows)
            columns.check(column, count, size)
            cells += count
    for total in header["totals"].values():
        count = rows if total["rows"] is None else _check_rows(total["rows"], rows)
        for part in (*PARTS, *(part for part in STEPS if part in total)):
            columns.check(total[part], count, size, "f")
    if cells > most:
        raise ValueError(cells)
    for group in header["tracks"]:
        counts = group["counts"]
        if len(counts) != _check_rows(group["rows"], rows) or min(counts, default=0) < 0:
            raise ValueError(counts)
        if len(group["values"]) != len(group["names"]) or set(map(type, group["names"])) - {str}:
            raise ValueError(group["names"])
        points = sum(counts)
        columns.check(group["steps"], points, size, "i")
        for column in (group["times"], *group["values"]):
            columns.check(column, points, size, "f")


def _check_rows(listed: list[int], rows: int) -> int:
    """How many rows are listed; raises unless each is one of so many."""
    if set(map(type, listed)) - {int} or min(listed, default=0) < 0 or max(listed, default=-1) >= rows:
        raise ValueError(rows)
    return len(listed)


def write(store: Store, sweep: str, found: Sequence[PackedRun], after: int = 0) -> int:
    """Put these runs into a segment of their own: its number, which is above `after`."""
    data = encode(sweep, found)
    n = after + 1
    while not store.put(layout.segment(sweep, n), data, if_absent=True):
        n = max(n + 1, newest(store, sweep, n) + 1)
    return n


def newest(store: Store, sweep: str, after: int = 0) -> int:
    """The highest number there is."""
    prefix = layout.segments(sweep)
    keys = [entry.key for entry in store.list(prefix, layout.segment(sweep, after) if after else "")]
    return max((number_of(key) for key in keys), default=after)


def number_of(key: str) -> int:
    """Number of a segment; 0 for a stray file among them."""
    found = layout.numbers(key.rsplit("/", 1)[1])
    return found[0] if found else 0


def _tables(
    found: Sequence[Mapping[str, Any]], blocks: Blocks, names: Iterable[str] = ()
) -> dict[str, Sparse]:
    """Columns of tables that need not have the same keys; what has no value in any row is left out."""
    every = list(names) or list(dict.fromkeys(name for record in found for name in record))
    tables = {}
    for name in every:
        rows = [n for n, one in enumerate(found) if name in one and (not names or one[name] is not None)]
        if rows:
            column = blocks.column([found[n][name] for n in rows])
            tables[name] = [None if len(rows) == len(found) else rows, column]
    return tables


def _totals(found: Sequence[Mapping[str, Mapping[str, float]]], blocks: Blocks) -> dict[str, Any]:
    totals = {}
    for name in dict.fromkeys(name for one in found for name in one):
        rows = [n for n, one in enumerate(found) if name in one]
        parts = {part: blocks.floats(float(found[n][name][part]) for n in rows) for part in PARTS}
        for part in STEPS:
            parts[part] = blocks.floats(float(found[n][name].get(part, nan)) for n in rows)
        totals[name] = {"rows": None if len(rows) == len(found) else rows, **parts}
    return totals


def _tracks(found: Sequence[Sequence[Track]], blocks: Blocks) -> list[dict[str, Any]]:
    """Tracks of the same metrics one after the other, with how many points each run has."""
    groups: dict[tuple[str, ...], list[tuple[int, Track]]] = {}
    for n, one in enumerate(found):
        for track in one:
            groups.setdefault(track.names, []).append((n, track))
    return [
        {
            "names": list(names),
            "rows": [n for n, _ in group],
            "counts": [len(track.steps) for _, track in group],
            "steps": blocks.joined("i", [track.steps for _, track in group]),
            "times": blocks.joined("f", [track.times for _, track in group]),
            "values": [blocks.joined("f", [track.values[name] for _, track in group]) for name in names],
        }
        for names, group in groups.items()
    ]
