"""TFRecord files, read without TensorFlow: an index of their records, each checked against its checksum.

A record is its length (8 bytes), the length's checksum (4), its bytes, their checksum (4). A file that breaks
off, or has another checksum, is a DamagedError that names file and record.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from hostler.errors import DamagedError, MissingError
from hostler.frozen import dataclass
from hostler.trackers.crc32c import crc32c

_HEAD = struct.Struct("<QI")
_FOOT = struct.Struct("<I")


@dataclass(frozen=True)
class Record:
    """Place of one record's bytes."""

    path: Path
    number: int  # in its file, from 0
    start: int
    size: int

    def read(self) -> bytes:
        with open(self.path, "rb") as file:
            file.seek(self.start)
            data = file.read(self.size + _FOOT.size)
        if _FOOT.unpack(data[self.size :])[0] != _masked(data[: self.size]):
            raise _damaged(self.path, self.number, "its bytes have another checksum")
        return data[: self.size]


@dataclass(frozen=True)
class Shard:
    """A part of a file: `take` records after the first `skip`; None takes all that follow."""

    path: Path
    skip: int = 0
    take: int | None = None


def index(shards: Sequence[Shard]) -> list[Record]:
    """All records of these parts, in order; their bytes are not read yet."""
    found: list[Record] = []
    for shard in shards:
        records = list(_records(shard.path))
        end = len(records) if shard.take is None else shard.skip + shard.take
        if end > len(records):
            raise DamagedError(f"{shard.path} has {len(records)} records, not {end}")
        found += records[shard.skip : end]
    return found


def _records(path: Path) -> Iterator[Record]:
    try:
        file = open(path, "rb")  # noqa: SIM115 the loop below is inside
    except OSError as error:
        raise MissingError(f"{path} cannot be read: {error.strerror}") from None
    with file:
        length, at, number = os.fstat(file.fileno()).st_size, 0, 0
        while at < length:
            head = file.read(_HEAD.size)
            if len(head) < _HEAD.size:
                raise _damaged(path, number, "the file breaks off")
            size, mark = _HEAD.unpack(head)
            if mark != _masked(head[:8]):
                raise _damaged(path, number, "its length has another checksum; is this a TFRecord file?")
            start = at + _HEAD.size
            at = start + size + _FOOT.size
            if at > length:
                raise _damaged(path, number, "the file breaks off")
            yield Record(path, number, start, size)
            file.seek(at)
            number += 1


def _damaged(path: Path, number: int, why: str) -> DamagedError:
    return DamagedError(f"{path}: record {number} is damaged: {why}", hint="prepare or copy the set again")


def _masked(data: bytes) -> int:
    crc = _CRC(data)
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def _quickest() -> Callable[[bytes], int]:
    """The C library's checksum where it is installed: ours takes a millisecond for a small picture."""
    try:
        import google_crc32c
    except ImportError:
        return crc32c
    found: Callable[[bytes], int] = google_crc32c.value
    return found


_CRC = _quickest()
