"""A file written in pieces in any order; large ones bypass the page cache where the disk can.

What goes past it costs no second copy, is not held back, and pushes no data set out of memory. Only whole
pages can; the rest, and everything on a disk that cannot, goes the usual way.
"""

from __future__ import annotations

import ctypes
import errno
import os
import zlib
from pathlib import Path
from types import TracebackType
from typing import Final

PAGE: Final = 4096
_CANNOT: Final = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)


class Target:
    def __init__(self, path: Path, *, direct: bool) -> None:
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        self._direct = _past_cache(path) if direct else None

    def put(self, at: int, piece: memoryview) -> int:
        """Write a piece to its place; returns its crc32. May be called from several threads."""
        crc = zlib.crc32(piece)
        done = self._put_pages(at, piece) if self._direct is not None else 0
        while done < len(piece):
            done += os.pwrite(self._handle, piece[done:], at + done)
        return crc

    def sync(self) -> None:
        os.fsync(self._handle)

    def __enter__(self) -> Target:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for handle in (self._handle, self._direct):
            if handle is not None:
                os.close(handle)

    def _put_pages(self, at: int, piece: memoryview) -> int:
        """The number of bytes of the piece that bypassed the cache."""
        size = len(piece) // PAGE * PAGE
        if self._direct is None or at % PAGE or not size or _address(piece) % PAGE:
            return 0
        try:
            done = os.pwrite(self._direct, piece[:size], at)
        except OSError as error:
            if error.errno not in _CANNOT:
                raise
            return 0
        return done // PAGE * PAGE


def _past_cache(path: Path) -> int | None:
    flag = getattr(os, "O_DIRECT", 0)
    if not flag:
        return None
    try:
        return os.open(path, os.O_WRONLY | flag)
    except OSError:
        return None


def _address(piece: memoryview) -> int:
    return 1 if piece.readonly else ctypes.addressof(ctypes.c_char.from_buffer(piece))
