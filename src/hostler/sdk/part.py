"""One rank's files of a checkpoint: written with their checksums, durable before anybody is told; read back.

Pieces are summed and written by several threads at once; neither holds the interpreter.
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import sys
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostler.errors import DamagedError
from hostler.records import saved_folder
from hostler.records.saved_folder import PIECE, THREADS, FileSum, Saved
from hostler.sdk import safetensors
from hostler.sdk.safetensors import Found


WRITE_BACK = 2  # SYNC_FILE_RANGE_WRITE


@dataclass(frozen=True)
class Part:
    """What was read of one rank's files."""

    tree: Mapping[str, Any]
    tensors: Mapping[str, Found]


def write(folder: Path, rank: int, tree: Mapping[str, Any], header: bytes, data: memoryview) -> list[FileSum]:
    """Both files, on disk when this returns."""
    text = json.dumps(tree, allow_nan=False).encode()
    return [
        write_file(folder / saved_folder.tensors_name(rank), [memoryview(header), data]),
        write_file(folder / saved_folder.state_name(rank), [memoryview(text)]),
    ]


def write_file(path: Path, buffers: list[memoryview]) -> FileSum:
    spans = []
    at = 0
    for buffer in buffers:
        for begin in range(0, len(buffer), PIECE):
            piece = buffer[begin : begin + PIECE]
            spans.append((at, piece))
            at += len(piece)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        if len(spans) > 2:
            with ThreadPoolExecutor(THREADS) as pool:
                crcs = list(pool.map(lambda span: _put(handle, *span), spans))
        else:
            crcs = [_put(handle, *span) for span in spans]
        os.fsync(handle)
    finally:
        os.close(handle)
    return FileSum(path.name, [(len(piece), crc) for (_, piece), crc in zip(spans, crcs, strict=True)])


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


def read(saved: Saved, rank: int) -> Part:
    """One rank's state, every byte of it checked. Tensors stay in the file until somebody reads them."""
    rows = {row.name: row for row in saved.files}
    try:
        state, tensors = rows[saved_folder.state_name(rank)], rows[saved_folder.tensors_name(rank)]
    except KeyError as error:
        raise DamagedError(f"{saved.mark.name} has no {error.args[0]}") from None
    text = _view(saved.folder / state.name, state)
    try:
        tree = json.loads(bytes(text))
    except ValueError:
        raise DamagedError(f"{state.name} is not JSON") from None
    return Part(tree, safetensors.parse(_view(saved.folder / tensors.name, tensors)))


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


def _put(handle: int, at: int, piece: memoryview) -> int:
    crc = zlib.crc32(piece)
    done = 0
    while done < len(piece):
        done += os.pwrite(handle, piece[done:], at + done)
    _begin_to_write_back(handle, at, len(piece))
    return crc


def _begin_to_write_back(handle: int, at: int, size: int) -> None:
    """Let the disk work while the rest is still being summed; the fsync at the end is what counts."""
    begin = getattr(ctypes.CDLL(None), "sync_file_range", None) if sys.platform == "linux" else None
    if begin is not None and size == PIECE:
        begin(handle, ctypes.c_int64(at), ctypes.c_int64(size), ctypes.c_uint(WRITE_BACK))
