"""The memory-mapped file of logged points: a point costs one copy, and survives SIGKILL.

A record's length is written after the rest of it: whoever reads the file meanwhile, or after the process was
killed inside a write, sees whole records alone. Room is allocated before it is mapped (a write into a mapped
hole of a full disk would kill the process); when there is none, points are dropped and counted.
"""

from __future__ import annotations

import mmap
import os
import struct
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hostler.records.series.points import survey

FIRST = 1 << 16  # bytes allocated at first; doubled from there
CHUNK = 1 << 24  # and never more than this at a time
SHAPES = 1000  # sets of names remembered
PAUSE = 5.0  # seconds between two tries to get room on a full disk

_HEAD = struct.Struct("<I")

Shape = tuple[Callable[..., None], int, int, bytes]  # packer, bytes, number of the set, its length field


class NoRoom(OSError):
    """The disk has no room for the point: it was dropped."""


class PointFile:
    """A process's points. Safe to use from several threads, and again from a signal handler."""

    def __init__(
        self,
        path: Path,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock, self._monotonic = clock, monotonic
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        self._lock = threading.RLock()
        self._shapes: dict[tuple[str, ...], Shape] = {}
        self._adding = False
        self._later: list[tuple[int, dict[str, Any]]] = []  # logged by signal handlers, not yet in the file
        self._refused: float | None = None
        self.dropped = 0
        held = survey(path)  # of another process of the same attempt
        self._at, self._ids, self.points = held.size, dict(held.ids), held.points
        self._end = held.size + FIRST
        os.ftruncate(self._file, held.size)  # what was cut short behind it goes
        _allocate(self._file, self._end)
        self._map = mmap.mmap(self._file, self._end)

    def add(self, step: int, values: Mapping[str, Any]) -> None:
        """Add a point. A value that is not a number raises an error of packing, and nothing is written."""
        with self._lock:
            if self._adding:  # a signal handler of this thread, in the middle of the lines below
                self._later.append((step, dict(values)))
                return
            self._adding = True
            try:
                names = tuple(values)
                pack, size, number, length = self._shapes.get(names) or self._shape(names)
                at = self._at
                if at + size > self._end:
                    self._grow(size)
                try:
                    pack(self._map, at + 4, 4, number, self._clock(), step, *values.values())
                except BaseException:
                    self._map[at : at + size] = bytes(size)
                    raise
                self._map[at : at + 4] = length
                self._at = at + size
                self.points += 1
            finally:
                self._adding = False
            if self._later:
                self._catch_up()

    def _catch_up(self) -> None:
        """Add what signal handlers logged; nobody is there any more to be told of an error."""
        while self._later:
            with suppress(struct.error, TypeError, NoRoom, IndexError):  # the last: a handler was quicker
                self.add(*self._later.pop(0))

    def close(self) -> None:
        """Cut the file to what it holds; nothing can be added after."""
        with self._lock:
            if self._file < 0:
                return
            self._catch_up()
            self._map.close()
            os.ftruncate(self._file, self._at)
            os.close(self._file)
            self._file = -1

    def disown(self) -> None:
        """In a forked child: let go of the parent's file without touching it."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def _shape(self, names: Sequence[str]) -> Shape:
        """The packing of a point with these names; new names are written to the file first."""
        for name in names:
            if name not in self._ids:
                self._define(name)
        if len(self._shapes) >= SHAPES:
            self._shapes.clear()
        number = len(self._shapes)
        self._put(struct.pack(f"<BH{len(names)}H", 3, number, *(self._ids[name] for name in names)))
        body = struct.Struct(f"<BHdq{len(names)}d")
        shape = (body.pack_into, body.size + 4, number, _HEAD.pack(body.size - 1))
        self._shapes[tuple(names)] = shape
        return shape

    def _define(self, name: str) -> None:
        number = len(self._ids)
        self._put(struct.pack("<BH", 1, number) + name.encode())
        self._ids[name] = number

    def _put(self, body: bytes) -> None:
        """Write a record other than a point: its type and payload."""
        at, end = self._at, self._at + 4 + len(body)
        if end > self._end:
            self._grow(4 + len(body))
        self._at = end
        self._map[at + 4 : end] = body
        self._map[at : at + 4] = _HEAD.pack(len(body) - 1)

    def _grow(self, size: int) -> None:
        now = self._monotonic()
        if self._refused is not None and now - self._refused < PAUSE:
            self.dropped += 1
            raise NoRoom("no room")
        end = self._end + max(min(self._end, CHUNK), size)
        try:
            _allocate(self._file, end)
        except OSError as error:
            self._refused, self.dropped = now, self.dropped + 1
            raise NoRoom(error.errno, error.strerror) from error
        self._map.resize(end)
        self._end, self._refused = end, None


def _allocate(file: int, size: int) -> None:
    """Room on the disk, not a hole in a file."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(file, 0, size)
        return
    held = os.fstat(file).st_size
    os.pwrite(file, bytes(size - held), held)
