"""Protocol Buffers on the wire, as much of it as event files and W&B's logs need: fields in, fields out."""

from __future__ import annotations

import struct
from collections.abc import Iterator

VARINT, DOUBLE, BYTES, FLOAT = 0, 1, 2, 5

Field = tuple[int, int, int | bytes]  # number, wire type, value: a number, or the bytes of anything else


class PartialMessage(Exception):
    """Raised for bytes that are not a whole message."""


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def number(field: int, value: int) -> bytes:
    return varint(field << 3 | VARINT) + varint(value)


def double(field: int, value: float) -> bytes:
    return varint(field << 3 | DOUBLE) + struct.pack("<d", value)


def single(field: int, value: float) -> bytes:
    try:
        return varint(field << 3 | FLOAT) + struct.pack("<f", value)
    except OverflowError:  # beyond what 32 bits can say
        return varint(field << 3 | FLOAT) + struct.pack("<f", float("inf") if value > 0 else float("-inf"))


def text(field: int, value: bytes | str) -> bytes:
    data = value.encode("utf-8", "replace") if isinstance(value, str) else value
    return varint(field << 3 | BYTES) + varint(len(data)) + data


def fields(data: bytes) -> Iterator[Field]:
    at = 0
    while at < len(data):
        tag, at = _varint(data, at)
        kind = tag & 7
        value: int | bytes
        if kind == VARINT:
            value, at = _varint(data, at)
        else:
            if kind == BYTES:
                size, at = _varint(data, at)
            elif kind in (DOUBLE, FLOAT):
                size = 8 if kind == DOUBLE else 4
            else:
                raise PartialMessage(f"wire type {kind}")
            value, at = data[at : at + size], at + size
            if at > len(data):
                raise PartialMessage("cut short")
        yield tag >> 3, kind, value


def all_of(data: bytes, field: int) -> list[bytes]:
    """The texts or messages under a number."""
    return [value for n, _, value in fields(data) if n == field and isinstance(value, bytes)]


def first(data: bytes, field: int) -> bytes:
    """The last one counts where there are several, as Protocol Buffers say; b'' if there is none."""
    return next(reversed(all_of(data, field)), b"")


def whole(data: bytes, field: int) -> int:
    """A signed number; 0 where it is not given."""
    found = [value for n, _, value in fields(data) if n == field and isinstance(value, int)]
    value = found[-1] if found else 0
    return value - (1 << 64) if value >= 1 << 63 else value


def real(data: bytes, field: int) -> float | None:
    """A 32 or 64 bit floating point number."""
    raw = first(data, field)
    return struct.unpack("<d" if len(raw) == 8 else "<f", raw)[0] if len(raw) in (4, 8) else None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if at >= len(data) or shift > 63:
            raise PartialMessage("cut short")
        byte = data[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if not byte & 0x80:
            return value, at
