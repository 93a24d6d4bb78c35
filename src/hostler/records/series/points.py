"""Metric points as packed bytes: a stream of length-prefixed records, so that unknown ones can be skipped.

    u32 length · u8 type · payload
    type 1  a name:   u16 id · UTF-8 text
    type 2  a point:  f64 time · i64 step · n × (u16 id · f64 value)
    type 3  a set:    u16 id of the set · n × u16 id of a name
    type 4  a point:  u16 id of its set · f64 time · i64 step · n × f64 value

The same stream is what a process leaves in its run folder and what a fragment in the store carries. A
record cut short at the end (the writer was killed inside it) is not read. A length of 0 is the end: a file
that grows by chunks has zeros behind its last record, and a record's length is written after the rest of it.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterable, Mapping
from pathlib import Path

from hostler import frozen
from hostler.frozen import dataclass

PIECE = 1 << 20

_HEAD = struct.Struct("<IB")
_NAME = struct.Struct("<H")
_POINT = struct.Struct("<dq")
_VALUE = struct.Struct("<Hd")
_ROW = struct.Struct("<Hdq")


@dataclass(frozen=True)
class Point:
    step: int
    time: float
    values: Mapping[str, float]


class Packer:
    """Packs points; each name is defined once per packer, so every packer's output stands alone."""

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}

    def pack(self, point: Point) -> bytes:
        parts = [self._define(name) for name in point.values if name not in self._ids]
        values = b"".join(_VALUE.pack(self._ids[name], value) for name, value in point.values.items())
        parts.append(_record(2, _POINT.pack(point.time, point.step) + values))
        return b"".join(parts)

    def _define(self, name: str) -> bytes:
        self._ids[name] = len(self._ids)
        return _record(1, _NAME.pack(self._ids[name]) + name.encode())


class Unpacker:
    """Reads a stream piece by piece: what was cut short waits for the next piece."""

    def __init__(self) -> None:
        self.names: dict[int, str] = {}
        self._sets: dict[int, tuple[str, ...]] = {}
        self._rest = b""

    def feed(self, data: bytes) -> list[Point]:
        data = self._rest + data
        points, at = self.take(data)
        self._rest = data[at:]
        return points

    def take(self, data: bytes) -> tuple[list[Point], int]:
        """The points of the whole records at the beginning, and how many bytes these are."""
        at, points = 0, []
        while at + _HEAD.size <= len(data):
            length, kind = _HEAD.unpack_from(data, at)
            end = at + _HEAD.size + length
            if not length or end > len(data):
                break
            payload = data[at + _HEAD.size : end]
            if kind == 1:
                self.names[_NAME.unpack_from(payload)[0]] = payload[_NAME.size :].decode("utf-8", "replace")
            elif kind == 2:
                points.append(self._point(payload))
            elif kind == 3:
                number, *names = struct.unpack(f"<{length // 2}H", payload)
                self._sets[number] = tuple(self.names[name] for name in names)
            elif kind == 4:
                points.append(self._row(payload))
            at = end
        return points, at

    def take_before_damage(self, data: bytes) -> tuple[list[Point], int]:
        """The same, up to a record that no writer makes."""
        at, points = 0, list[Point]()
        while at + _HEAD.size <= len(data):
            end = at + _HEAD.size + _HEAD.unpack_from(data, at)[0]
            try:
                found, used = self.take(data[at:end])
            except (KeyError, struct.error):
                break
            points += found
            at += used
            if not used:
                break
        return points, at

    def _point(self, payload: bytes) -> Point:
        time, step = _POINT.unpack_from(payload)
        values = _VALUE.iter_unpack(payload[_POINT.size :])
        return Point(step, time, {self.names[i]: value for i, value in values})

    def _row(self, payload: bytes) -> Point:
        number, time, step = _ROW.unpack_from(payload)
        names = self._sets[number]
        values = struct.unpack_from(f"<{len(names)}d", payload, _ROW.size)
        return Point(step, time, dict(zip(names, values, strict=True)))


def joined(streams: Iterable[bytes]) -> bytes:
    """Streams of points as one: names that they begin with stand there once, as long as they are the same."""
    parts, names = list[bytes](), b""
    for stream in streams:
        end = _names_end(stream)
        if end == len(stream):
            continue  # no point
        parts.append(stream[end:] if stream[:end] == names else stream)
        names = stream[:end]
    return b"".join(parts)


def _names_end(stream: bytes) -> int:
    """Where the names end that a stream begins with."""
    at = 0
    while at + _HEAD.size <= len(stream):
        length, kind = _HEAD.unpack_from(stream, at)
        if kind != 1:
            break
        at += _HEAD.size + length
    return at


class PointReader:
    """A file of points that may still grow, read from where the last read ended. A script may have written to
    it: what follows a record that no writer makes is not read."""

    def __init__(self, path: Path) -> None:
        self._path, self._unpacker, self.at, self._damaged = path, Unpacker(), 0, False

    @property
    def ids(self) -> dict[str, int]:
        """Names met so far, with their numbers."""
        return {name: number for number, name in self._unpacker.names.items()}

    def read(self, size: int = PIECE) -> list[Point]:
        """The points in the next `size` bytes, or in the one longer record that lies there."""
        if self._damaged:
            return []
        try:
            with open(self._path, "rb") as file:
                file.seek(self.at)
                data = file.read(size)
        except FileNotFoundError:
            return []
        try:
            points, used = self._unpacker.take(data)
        except (KeyError, struct.error):
            points, used = self._unpacker.take_before_damage(data)
            self._damaged = True
        self.at += used
        if used == 0 and len(data) == size and data[:4] != bytes(4):
            return self.read(2 * size)
        return points if points or not used else self.read(size)


class PointFolder:
    """The files of all ranks of one attempt (`metrics.bin`, `metrics-<rank>.bin`), as one stream."""

    def __init__(self, first: Path) -> None:
        self._first, self._readers = first, {first.name: PointReader(first)}
        self.is_first = True  # whether the last read was of the first file: that of rank 0

    def read(self) -> list[Point]:
        """New points of the first file that has some."""
        for name in self._names():
            if name not in self._readers:
                self._readers[name] = PointReader(self._first.with_name(name))
            if points := self._readers[name].read():
                self.is_first = name == self._first.name
                return points
        return []

    def _names(self) -> list[str]:
        stem, suffix = f"{self._first.stem}-", self._first.suffix
        try:
            names = os.listdir(self._first.parent)
        except FileNotFoundError:
            return []
        others = sorted(name for name in names if name.startswith(stem) and name.endswith(suffix))
        return [self._first.name, *others]


@frozen.dataclass(frozen=True)
class PointsContent:
    """Content of a file of points: bytes of whole records, points, and the ids of names."""

    size: int
    points: int
    ids: Mapping[str, int]


def survey(path: Path) -> PointsContent:
    reader = PointReader(path)
    count = 0
    while points := reader.read():
        count += len(points)
    return PointsContent(reader.at, count, reader.ids)


def pack(points: Iterable[Point]) -> bytes:
    packer = Packer()
    return b"".join(packer.pack(point) for point in points)


def unpack(data: bytes) -> list[Point]:
    return Unpacker().take(data)[0]


def _record(kind: int, payload: bytes) -> bytes:
    return _HEAD.pack(len(payload), kind) + payload
