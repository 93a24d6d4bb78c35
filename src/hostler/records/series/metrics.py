"""Metric fragments of an attempt in the store, and the chain a reader follows through the attempts.

The first fragment of an attempt names the checkpoint it went on from and the metric position in it. A
reader starts at the last attempt that has one and follows these names back; points off that chain (a
zombie's, or those after the checkpoint that was restored) are not shown.

When an attempt is over its writer makes one fragment of all: it gets the next number, says that it is whole,
and those before it go. A reader that has listed one of those and finds it gone looks again.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from typing import Any

from hostler.errors import DamagedError, NewerFormatError
from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import TABLE, WHOLE, checked, parse, taken_apart
from hostler.records.series.points import Point, joined, pack, unpack
from hostler.store import NotFound, Store

FORMAT = 1
HELD = 20_000  # values of an attempt that its writer remembers
SMALL = 4 << 20  # bytes of all its fragments that it remembers
LOOKS = 10  # of a reader at fragments of which one was gone each time
_MAGIC = b"HSTM"
_PREFIX = struct.Struct("<4sHI")


@dataclass(frozen=True)
class Origin:
    """Where an attempt went on from: an attempt's checkpoint, and how many of its points that covers."""

    attempt: int
    step: int
    position: int
    others: Mapping[str, int] = field(default_factory=dict)  # of other nodes' points, by their writers


@dataclass(frozen=True)
class Fragment:
    attempt: int
    start: int  # number, within the attempt, of the first point
    origin: Origin | None
    points: Sequence[Point]
    rank: int = 0  # of its writer
    whole: bool = False  # all that its writer has written, in place of what came before


class MetricWriter:
    """Writes the fragments of an attempt and rank; they are numbered and create-once."""

    def __init__(self, store: Store, run: str, attempt: int, rank: int = 0) -> None:
        self._store, self._run, self._attempt, self._rank = store, run, attempt, rank
        self.origin: Origin | None = None
        self._first = self._sequence = 0  # numbers of the first fragment that is there, and of the next
        self.position = 0  # points of this attempt that are in the store
        self._values = 0
        # The run's whole curve; None: it is only in the store. A later attempt that has said nothing has none
        # of its own: what the ones before it logged still counts.
        self.whole: list[Point] | None = [] if attempt == 1 else None
        self._bodies: list[bytes] | None = []  # of all fragments, while they are small

    def write(self, points: Sequence[Point]) -> None:
        """Put these points into the store; after an error they may be written again, with the same number."""
        packed = pack(points)
        header = self._header(self.position, first=self._sequence == 0)
        self._store.put(self._key(self._sequence), fragment(header, packed))
        self._sequence += 1
        self.position += len(points)
        self._remember(points)
        self._keep(packed)

    def pack(self) -> None:
        """Make one fragment of all, once nothing more comes; may be repeated. Killed inside it, nothing is
        lost and nothing is there twice."""
        keys = [self._key(n) for n in range(self._first, self._sequence)]
        if len(keys) < 2:
            return
        bodies = self._read_back(keys) if self._bodies is None else self._bodies
        header, packed = {**self._header(0, first=True), "whole": True}, joined(bodies)
        self._store.put(self._key(self._sequence), fragment(header, packed))
        self._first, self._sequence = self._sequence, self._sequence + 1
        self._bodies = []
        self._keep(packed)
        self._store.delete(*keys)

    def _read_back(self, keys: Sequence[str]) -> list[bytes]:
        found = list[bytes]()
        for key in keys:
            try:
                data = self._store.get(key).data
            except NotFound:  # a number of one that was made part of another
                continue
            found = [*([] if is_whole(data, key) else found), body(data, key)]
        return found

    def _header(self, start: int, *, first: bool) -> dict[str, Any]:
        return {
            "token": os.urandom(8).hex(),
            "attempt": self._attempt,
            "start": start,
            "origin": vars(self.origin) if self.origin and first else None,
        }

    def _key(self, sequence: int) -> str:
        return layout.metric_fragment(self._run, self._attempt, self._rank, sequence)

    def _keep(self, packed: bytes) -> None:
        if self._bodies is not None:
            self._bodies.append(packed)
            if sum(map(len, self._bodies)) > SMALL:
                self._bodies = None

    def _remember(self, points: Sequence[Point]) -> None:
        self._values += sum(len(point.values) for point in points)
        if self.whole is not None and self._values <= HELD:
            self.whole += points
        else:
            self.whole = None

    def go_on(self) -> list[Point]:
        """Go on after what this attempt's writer, which is dead, has brought into the store: those points."""
        known: list[Point] = []
        self.whole, self._bodies = None, []
        for entry in self._store.list(layout.metrics(self._run)):
            attempt, rank, sequence = layout.split_fragment(entry.key) or (0, 0, 0)
            if (attempt, rank) == (self._attempt, self._rank):
                fragment = _decode(self._store.get(entry.key).data, entry.key)
                if fragment.whole:  # what is left of those before it goes with it into the next
                    known, self._bodies = [], []
                known += fragment.points
                self.origin = self.origin or fragment.origin
                self._sequence, self.position = sequence + 1, fragment.start + len(fragment.points)
                self._keep(pack(fragment.points))
        return known

    def continue_from(self, origin: Origin | None) -> None:
        """Name where this attempt goes on from (None: the beginning), even if it never logs a point."""
        self.origin = origin
        self.write([])
        self.whole = [] if origin is None else None


def read(store: Store, run: str, attempt: int, *, cache: FragmentCache | None = None) -> list[Point]:
    """The points of a run as they stand, seen from its newest attempt."""
    return chain((cache or FragmentCache()).update(store, run), attempt)


def predecessor(store: Store, run: str, attempt: int) -> int:
    """The attempt that this one went on from; 0 if it began at the beginning, or never began."""
    for entry in store.list(layout.metrics(run)):
        place = layout.split_fragment(entry.key)
        if place and place[:2] == (attempt, 0):
            origin = _decode(store.get(entry.key).data, entry.key).origin
            return origin.attempt if origin and origin.attempt < attempt else 0
    return 0


class FragmentCache:
    """Fragments already read; a fragment is immutable, so only new names are fetched."""

    def __init__(self) -> None:
        self._known: dict[str, Fragment] = {}

    def update(self, store: Store, run: str) -> list[Fragment]:
        for _ in range(LOOKS):
            listed = [entry.key for entry in store.list(layout.metrics(run))]
            if self._read(store, listed):
                break
        return [self._known[key] for key in sorted(self._known) if key in set(listed)]

    def _read(self, store: Store, listed: Sequence[str]) -> bool:
        """False if one has gone since it was listed: another holds what was in it."""
        for key in listed:
            if key not in self._known:
                try:
                    self._known[key] = _decode(store.get(key).data, key)
                except NotFound:
                    return False
        return True


def chain(fragments: Sequence[Fragment], attempt: int) -> list[Point]:
    """Points on the chain that leads back from `attempt`, oldest first. Pure. An attempt without a fragment
    has not begun: the one before it is still what counts."""
    return join([_covered(own, upto) for own, upto in _links(fragments, attempt)][::-1])


def covered(fragments: Sequence[Fragment], by: Origin) -> list[Point]:
    """Points that a checkpoint covers, and those on the chain that leads back from it, oldest first. Pure."""
    return join([_covered(own, upto) for own, upto in _links(fragments, by.attempt, by)][::-1])


def lineage(fragments: Sequence[Fragment], attempt: int) -> list[int]:
    """The attempts of that chain, oldest first; the first of them may have measured nothing. Pure."""
    links = list(_links(fragments, attempt))
    found = [own[0].attempt for own, _ in links]
    first = _origin_of(links[-1][0]) if links else None
    return [*([first.attempt] if first and first.attempt < found[-1] else []), *found[::-1]]


def _links(
    fragments: Sequence[Fragment], attempt: int, upto: Origin | None = None
) -> Iterator[tuple[list[Fragment], Origin | None]]:
    """Fragments of each attempt on the chain, newest first, and the checkpoint that the next went on from;
    `upto`: the checkpoint of the newest that the chain leads back from."""
    by_attempt: dict[int, list[Fragment]] = {}
    for fragment in fragments:
        by_attempt.setdefault(fragment.attempt, []).append(fragment)
    newest = max((a for a in by_attempt if a <= attempt), default=0)
    attempt, upto = newest, upto if newest == attempt else None
    while attempt in by_attempt:
        own = by_attempt[attempt]
        yield own, upto
        origin = _origin_of(own)
        if origin is None or origin.attempt >= attempt:
            break
        attempt, upto = origin.attempt, origin


def _origin_of(own: Sequence[Fragment]) -> Origin | None:
    return next((one.origin for one in own if one.origin and one.rank == own[0].rank), None)


def _covered(own: Sequence[Fragment], upto: Origin | None) -> list[Point]:
    """Points of an attempt that a checkpoint covers, each writer's for itself; None: all. Where it does not
    say how many of another node's it covers, those count whose steps node 0's covered points have reached."""
    writers: dict[int, list[Point]] = {}
    for fragment in own:
        if fragment.whole:
            writers[fragment.rank] = []
        writers.setdefault(fragment.rank, []).extend(fragment.points)
    if upto is None:
        return [point for points in writers.values() for point in points]
    first = writers.get(0, [])[: upto.position]
    reached = max((point.step for point in first), default=-1)
    found = first
    for rank in sorted(writers.keys() - {0}):
        counted, points = upto.others.get(str(rank)), writers[rank]
        found += [p for p in points if p.step <= reached] if counted is None else points[:counted]
    return found


def join(pieces: Sequence[Sequence[Point]]) -> list[Point]:
    """Later attempts win: a point that was logged again after a resume is shown once."""
    joined: list[Point] = []
    seen: set[tuple[str, int]] = set()
    for piece in reversed(pieces):
        kept = [_without(point, seen) for point in piece]
        seen |= {(name, point.step) for point in piece for name in point.values}
        joined[:0] = [point for point in kept if point.values]
    return joined


def _without(point: Point, seen: set[tuple[str, int]]) -> Point:
    values = {name: value for name, value in point.values.items() if (name, point.step) not in seen}
    return point if len(values) == len(point.values) else Point(point.step, point.time, values)


def summary(points: Sequence[Point]) -> dict[str, dict[str, float]]:
    """Per metric: last, min, max (of those that are numbers), and the step of each: the first that had it."""
    found: dict[str, dict[str, float]] = {}
    for point in points:
        step = point.step
        for name, value in point.values.items():
            row = found.get(name)
            if row is None:
                row = found[name] = {"min": value, "min_step": step, "max": value, "max_step": step}
            elif value < row["min"] or math.isnan(row["min"]):
                row["min"], row["min_step"] = value, step
            if value > row["max"] or math.isnan(row["max"]):
                row["max"], row["max_step"] = value, step
            row["last"], row["step"] = value, step
    return found


def add_up(
    before: Mapping[str, Mapping[str, float]], then: Mapping[str, Mapping[str, float]]
) -> dict[str, dict[str, float]]:
    """The summary of two stretches of one curve, from theirs."""
    found = {name: dict(row) for name, row in before.items()}
    for name, row in then.items():
        found[name] = dict(row)
        if name in before:
            old = before[name]
            if not (row["min"] < old["min"] or math.isnan(old["min"])):
                _take(found[name], old, "min")
            if not (row["max"] > old["max"] or math.isnan(old["max"])):
                _take(found[name], old, "max")
    return found


def _take(row: dict[str, float], old: Mapping[str, float], part: str) -> None:
    """Take the least or the largest value with its step, which an older hostler has not noted."""
    row[part] = old[part]
    row.pop(f"{part}_step", None)
    if f"{part}_step" in old:
        row[f"{part}_step"] = old[f"{part}_step"]


def fragment(header: Mapping[str, object], packed: bytes) -> bytes:
    """The bytes of a fragment that holds these points."""
    text = json.dumps(header, separators=(",", ":")).encode()
    return _PREFIX.pack(_MAGIC, FORMAT, len(text)) + text + packed


def body(data: bytes, key: str) -> bytes:
    """The packed points of a fragment."""
    return data[_header(data, key)[1] :]


def is_whole(data: bytes, key: str) -> bool:
    """Whether a fragment stands in place of those of its writer that come before it."""
    return bool(_header(data, key)[0].get("whole"))


def _decode(data: bytes, key: str) -> Fragment:
    header, begin = _header(data, key)
    place = layout.split_fragment(key)
    checked(header, _FIELDS, key, ["attempt", "start"])
    with taken_apart(key):
        origin = _origin(header["origin"], key) if header.get("origin") else None
        rank, whole = place[1] if place else 0, bool(header.get("whole"))
        return Fragment(header["attempt"], header["start"], origin, unpack(data[begin:]), rank, whole)


def _origin(record: dict[str, Any], key: str) -> Origin:
    checked(record, _ORIGIN, key, ["attempt", "step", "position"])
    others = {rank: int(points) for rank, points in (record.get("others") or {}).items()}
    return Origin(record["attempt"], record["step"], record["position"], others)


_FIELDS = {"attempt": WHOLE, "start": WHOLE, "origin": TABLE}
_ORIGIN = {"attempt": WHOLE, "step": WHOLE, "position": WHOLE, "others": TABLE}


def _header(data: bytes, key: str) -> tuple[dict[str, Any], int]:
    """The header of a fragment, and where it ends."""
    if len(data) < _PREFIX.size or data[:4] != _MAGIC:
        raise DamagedError(f"{key} is not a metric fragment")
    _, version, length = _PREFIX.unpack_from(data)
    if version > FORMAT:
        raise NewerFormatError(
            f"{key} was written by a newer hostler", hint="upgrade: pip install -U hostler"
        )
    begin = _PREFIX.size + length
    if begin > len(data):
        raise DamagedError(f"{key} is not a whole metric fragment")
    return parse(data[_PREFIX.size : begin], key), begin
