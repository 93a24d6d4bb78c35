"""Messages over a pipe: two lengths, a JSON header, raw bytes.

A frame is read whole or not at all; what ends in the middle of one is a cut connection.
"""

from __future__ import annotations

import json
import struct
from dataclasses import field
from typing import Any, Protocol

from hostler.frozen import dataclass

_LENGTHS = struct.Struct(">II")
LARGEST = 64 << 20  # bytes of one body; larger things travel in parts


class ByteSource(Protocol):
    def read(self, size: int, /) -> bytes: ...


class Sink(Protocol):
    def write(self, data: bytes, /) -> Any: ...

    def flush(self) -> None: ...


@dataclass(frozen=True)
class Frame:
    header: dict[str, Any] = field(default_factory=dict)
    body: bytes = b""


def write(sink: Sink, frame: Frame) -> None:
    head = json.dumps(frame.header, separators=(",", ":")).encode()
    sink.write(_LENGTHS.pack(len(head), len(frame.body)) + head + frame.body)
    sink.flush()


def read(source: ByteSource) -> Frame | None:
    """The next frame; None where the stream ends."""
    lengths = exactly(source, _LENGTHS.size)
    if lengths is None:
        return None
    head, body = _LENGTHS.unpack(lengths)
    if head > LARGEST or body > LARGEST:
        raise ValueError("not a frame")
    rest = exactly(source, head + body)
    return None if rest is None else Frame(json.loads(rest[:head]), rest[head:])


def exactly(source: ByteSource, size: int) -> bytes | None:
    """So many bytes; None if the stream ends before."""
    parts: list[bytes] = []
    while size:
        part = source.read(size)
        if not part:
            return None
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
