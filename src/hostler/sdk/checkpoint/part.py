"""Files of a checkpoint from a single rank: written with their checksums, durable before they are announced.

Pieces are summed and written by several threads at once; neither holds the interpreter.
"""

from __future__ import annotations

import ctypes
import errno
import json
import mmap
import os
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from hostler.errors import DamagedError
from hostler.frozen import dataclass
from hostler.records.checkpoint import saved_folder
from hostler.records.checkpoint.saved_folder import PIECE, THREADS, FileSum, SavedCheckpoint
from hostler.sdk.checkpoint import safetensors
from hostler.sdk.checkpoint.safetensors import StoredTensor

DIRECT = 32 << 20  # larger files go past the page cache


@dataclass(frozen=True)
class RankPart:
    """The content read from one rank's files."""

    tree: Mapping[str, Any]
    tensors: Mapping[str, StoredTensor]


def write(folder: Path, rank: int, tree: Mapping[str, Any], header: bytes, data: memoryview) -> list[FileSum]:
    """Both files, on disk when this returns."""
    text = json.dumps(tree, allow_nan=False).encode()
    return [
        write_file(folder / saved_folder.tensors_name(rank), [memoryview(header), data]),
        write_file(folder / saved_folder.state_name(rank), [memoryview(text)]),
    ]


def write_file(path: Path, buffers: list[memoryview]) -> FileSum:
    """Write a file from several buffers, durably."""
    spans: list[tuple[int, memoryview]] = []
    at = 0
    for buffer in buffers:
        for begin in range(0, len(buffer), PIECE):
            piece = buffer[begin : begin + PIECE]
            spans.append((at, piece))
            at += len(piece)
    with TargetFile(path, direct=at > DIRECT) as target:
        crcs = _put_all(target, spans)
        target.sync()
    return FileSum(path.name, [(len(piece), crc) for (_, piece), crc in zip(spans, crcs, strict=True)])


def _put_all(target: TargetFile, spans: list[tuple[int, memoryview]]) -> list[int]:
    if len(spans) > 2:
        try:
            with ThreadPoolExecutor(THREADS) as pool:
                return list(pool.map(lambda span: target.put(*span), spans))
        except RuntimeError:  # the process is at its end: no thread can be started there
            pass
    return [target.put(*span) for span in spans]


def write_whole(path: Path, data: bytes) -> None:
    """Whole or not at all, and on disk."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    write_file(temporary, [memoryview(data)])
    os.replace(temporary, path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError:
        pass  # some network file systems refuse it
    finally:
        os.close(handle)


def read(saved: SavedCheckpoint, rank: int) -> RankPart:
    """Read one rank's state and check every byte. Tensors stay in the file until somebody reads them."""
    rows = {row.name: row for row in saved.files}
    try:
        state, tensors = rows[saved_folder.state_name(rank)], rows[saved_folder.tensors_name(rank)]
    except KeyError as error:
        raise DamagedError(f"{saved.mark.name} does not contain {error.args[0]}") from None
    text = _view(saved.folder / state.name, state)
    try:
        tree = json.loads(bytes(text))
    except (ValueError, RecursionError):
        raise DamagedError(f"{state.name} is not JSON") from None
    return RankPart(tree, safetensors.parse(_view(saved.folder / tensors.name, tensors)))


def _view(path: Path, row: FileSum) -> memoryview:
    """A file's bytes, checked; changing them changes no file."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            view = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY) if size else b"")
    except FileNotFoundError:
        raise DamagedError(f"{row.name} is missing") from None
    saved_folder.check(view, row)
    return view


# A file written in pieces in any order; large ones bypass the page cache where the disk can.
#
# What goes past it costs no second copy, is not held back, and pushes no data set out of memory. Only whole
# pages can; the rest, and everything on a disk that cannot, goes the usual way.


PAGE: Final = 4096
_CANNOT: Final = (errno.EINVAL, errno.EOPNOTSUPP, errno.ENOTSUP)


class TargetFile:
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

    def __enter__(self) -> TargetFile:
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
