"""TensorBoard's event files: records with masked CRC-32C sums, written and read without TensorBoard.

    u64 length · u32 sum of it · an Event message · u32 sum of that

A record cut short at the end (its writer was killed inside it) is not read; after a damaged one nothing is.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hostler.records.series.points import Point
from hostler.trackers import wire
from hostler.trackers.crc32c import crc32c

VERSION = b"brain.Event:2"
PREFIX = "events.out.tfevents."
_LENGTH, _SUM = struct.Struct("<Q"), struct.Struct("<I")
_WALL, _STEP, _VERSION, _SUMMARY, _SESSION = 1, 2, 3, 5, 7  # Event
_VALUE = 1  # Summary
_TAG, _SIMPLE, _TENSOR, _METADATA = 1, 2, 8, 9  # Summary.Value
_LARGEST = 64 << 20


class EventWriter:
    """Writes a file of scalars, from its first record on."""

    def __init__(self, file: BinaryIO, time: float) -> None:
        self._file = file
        self._record(wire.double(_WALL, time) + wire.text(_VERSION, VERSION))

    def add(self, point: Point) -> None:
        values = b"".join(
            wire.text(_VALUE, wire.text(_TAG, name) + wire.single(_SIMPLE, value))
            for name, value in point.values.items()
        )
        head = wire.double(_WALL, point.time) + wire.number(_STEP, point.step)
        self._record(head + wire.text(_SUMMARY, values))

    def _record(self, data: bytes) -> None:
        length = _LENGTH.pack(len(data))
        self._file.write(length + _SUM.pack(_masked(length)) + data + _SUM.pack(_masked(data)))


def is_one(path: Path) -> bool:
    """Whether it begins as such files do; one that is empty may still be written."""
    with open(path, "rb") as file:
        return _next(file) is not None or file.tell() == 0


def read(path: Path) -> Iterator[Point]:
    """The scalars of a file, as they were written; a point without values: it was begun again here."""
    with open(path, "rb") as file:
        while (data := _next(file)) is not None:
            try:
                point = _point(data)
            except wire.PartialMessage:
                return
            if point.values or _is_start(data):
                yield point


def _next(file: BinaryIO) -> bytes | None:
    head = file.read(12)
    if len(head) < 12 or _SUM.unpack_from(head, 8)[0] != _masked(head[:8]):
        return None
    (length,) = _LENGTH.unpack_from(head)
    data = file.read(length + 4) if length <= _LARGEST else b""
    if len(data) < length + 4 or _SUM.unpack_from(data, length)[0] != _masked(data[:length]):
        return None
    return data[:length]


def _is_start(event: bytes) -> bool:
    return wire.whole(wire.first(event, _SESSION), 1) == 1


def _point(event: bytes) -> Point:
    values: dict[str, float] = {}
    for one in wire.all_of(wire.first(event, _SUMMARY), _VALUE):
        value = _scalar(one)
        if value is not None:
            values[wire.first(one, _TAG).decode("utf-8", "replace")] = value
    return Point(wire.whole(event, _STEP), wire.real(event, _WALL) or 0.0, values)


def _scalar(value: bytes) -> float | None:
    """A simple value, or what today's writers say: a tensor of one number."""
    simple = wire.real(value, _SIMPLE)
    return simple if simple is not None else _of_tensor(wire.first(value, _TENSOR))


def _of_tensor(tensor: bytes) -> float | None:
    kind, raw = wire.whole(tensor, 1), wire.first(tensor, 4)
    if wire.all_of(wire.first(tensor, 2), 2):
        return None  # it has dimensions: no scalar
    if kind == 1:  # DT_FLOAT: as raw bytes, or packed or single in float_val
        raw = raw or wire.first(tensor, 5)
        return struct.unpack("<f", raw)[0] if len(raw) == 4 else None
    if kind == 2:  # DT_DOUBLE
        raw = raw or wire.first(tensor, 6)
        return struct.unpack("<d", raw)[0] if len(raw) == 8 else None
    return None


def _masked(data: bytes) -> int:
    crc = crc32c(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF
