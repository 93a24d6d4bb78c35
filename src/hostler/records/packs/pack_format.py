"""Bytes of packs.

    pack:  "HSTP" · u16 format · u16 0 · chunks, one for each run
    chunk: zlib of: u32 length of its header · header (JSON: key, size, etag, time of each) · objects' bytes

A chunk is found by its seal alone (`seals.py`).

Bytes that anybody may have written take memory for what is there alone: zlib makes a thousand bytes of one,
and JSON an object of three. Before either, sizes and counts are compared with the packed bytes. Each run has
a hash in its seal and each object an etag in its chunk, which no zlib makes small.
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from hostler.errors import DamagedError
from hostler.records import layout
from hostler.records.body import LAST, taken_apart
from hostler.records.packs import covered_keys

FORMAT = 1
LARGEST = 128 << 20  # bytes of a chunk, packed or not
HEAD = struct.pack("<4sHH", b"HSTP", FORMAT, 0)

_LENGTH = struct.Struct("<I")

# What JSON may have for each packed byte. A seal of 100,000 runs: 4 to 15 bytes, 0.1 lists, 0.8 values; 2.2
# values where each run has 20 ends. A chunk: 4 texts in each list, or 6 with quotes in them.
_TEXT, _LISTS, _VALUES = 25, 0.25, 2.5
_QUOTES = 6  # for each list


class Spare(NamedTuple):
    """What JSON may have besides, however few bytes it was packed into."""

    text: int = 1 << 20
    lists: int = 1000
    values: int = 100_000


_SPARE = Spare()


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


def encode_chunk(rows: Sequence[PackedObject]) -> bytes:
    header = json.dumps([[row.key, len(row.data), row.etag, row.modified] for row in rows]).encode()
    return zlib.compress(b"".join([_LENGTH.pack(len(header)), header, *(row.data for row in rows)]), 6)


def decode_chunk(data: bytes, key: str) -> dict[str, PackedObject]:
    """key → object, of the chunk of one run; the key of its pack is for the message only."""
    unpacking = Unpacking(data, key)
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


class Unpacking:
    """Bytes of a zlib stream, as many as are asked for at a time."""

    def __init__(self, data: bytes, key: str, spare: Spare | None = None) -> None:
        self._rest, self._packed, self._key, self._spare = data, len(data), key, spare or _SPARE
        self._stream = zlib.decompressobj()

    def text(self, size: int | None = None) -> bytes:
        """JSON that takes no more memory than such packed bytes may: of a size, or all that there is."""
        most = _TEXT * self._packed + self._spare.text
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
        most = _LISTS * self._packed + self._spare.lists
        return (
            lists <= most
            and text.count(b'"') <= _QUOTES * most
            and values <= _VALUES * self._packed + self._spare.values
        )

    def _damaged(self, why: str) -> DamagedError:
        return DamagedError(f"{self._key} is damaged: {why}")
