"""A checkpoint that the library wrote, as a folder: files, then COMMIT with their sizes and checksums.

    step-000000000100/           one for each step; step-000000000100.1 is a second one of the same step
      state-0000.json            what is not a tensor, of rank 0
      tensors-0000.safetensors   all tensors of rank 0
      part-0001.json             rank 1 has written its files (only where there are several)
      COMMIT                     makes it one; put last, taken away first

A folder without a whole COMMIT is not a checkpoint, whatever else is in it.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import shutil
import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostler.errors import DamagedError, NewerFormatError
from hostler.records.body import MISFITS, taken_apart

FORMAT = 1
COMMIT = "COMMIT"
PIECE = 8 << 20
THREADS = 4
_NAME = re.compile(r"step-(\d{12})(?:\.(\d+))?")


@dataclass(frozen=True, order=True)
class Mark:
    """Which checkpoint: its step, and its number among those of that step."""

    step: int
    again: int = 0

    @property
    def name(self) -> str:
        return f"step-{self.step:012d}" + (f".{self.again}" if self.again else "")


@dataclass(frozen=True)
class FileSum:
    """A file of a checkpoint: crc32 of each piece, in order."""

    name: str
    pieces: Sequence[tuple[int, int]]  # length, crc32

    @property
    def size(self) -> int:
        return sum(length for length, _ in self.pieces)

    def record(self) -> dict[str, Any]:
        return {"name": self.name, "size": self.size, "pieces": [list(piece) for piece in self.pieces]}


@dataclass(frozen=True)
class SavedCheckpoint:
    """A checkpoint with a whole COMMIT."""

    folder: Path
    mark: Mark
    record: Mapping[str, Any]

    @property
    def files(self) -> list[FileSum]:
        with taken_apart(f"{self.mark.name}/{COMMIT}"):
            return sums(self.record["files"])


def state_name(rank: int) -> str:
    return f"state-{rank:04d}.json"


def tensors_name(rank: int) -> str:
    return f"tensors-{rank:04d}.safetensors"


def part_name(rank: int) -> str:
    return f"part-{rank:04d}.json"


def rank_of(name: str) -> int:
    """The rank that wrote a file of a checkpoint."""
    return int(name.partition(".")[0].rpartition("-")[2])


def sums(rows: Iterable[Mapping[str, Any]]) -> list[FileSum]:
    return [FileSum(row["name"], [(n, crc) for n, crc in row["pieces"]]) for row in rows]


def mark_of(name: str) -> Mark | None:
    match = _NAME.fullmatch(name)
    return Mark(int(match[1]), int(match[2] or 0)) if match else None


def marks(folder: Path) -> list[Mark]:
    """All folders that look like a checkpoint, newest first, whole or not."""
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    return sorted((mark for name in names if (mark := mark_of(name))), reverse=True)


def committed(folder: Path) -> list[Mark]:
    """Checkpoints with a COMMIT, newest first."""
    return [mark for mark in marks(folder) if (folder / mark.name / COMMIT).exists()]


def seal(record: Mapping[str, Any]) -> bytes:
    """The bytes of a COMMIT or of a part: JSON that carries its own checksum."""
    whole = {"format": FORMAT, **record}
    return json.dumps({"crc32": _crc(whole), "record": whole}).encode()


def unseal(data: bytes, what: str) -> dict[str, Any]:
    try:
        outer = json.loads(data)
        record = outer["record"]
        good = _crc(record) == outer["crc32"]
    except MISFITS:
        raise DamagedError(f"{what} is cut short") from None
    if not good or not isinstance(record, dict) or type(record.get("format", 0)) is not int:
        raise DamagedError(f"{what} is not what was written")
    if record.get("format", 0) > FORMAT:
        raise NewerFormatError(
            f"{what} was written by a newer hostler", hint="upgrade: pip install -U hostler"
        )
    return record


def read(folder: Path, mark: Mark) -> SavedCheckpoint:
    """The COMMIT of a checkpoint; FileNotFoundError if there is none."""
    place = folder / mark.name
    return SavedCheckpoint(place, mark, unseal((place / COMMIT).read_bytes(), f"{mark.name}/{COMMIT}"))


def check_file(path: Path, row: FileSum) -> None:
    """Whether a file is what was written; FileNotFoundError if it is not there."""
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        if not size:
            check(memoryview(b""), row)
            return
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped, memoryview(mapped) as view:
            check(view, row)


def check(view: memoryview, row: FileSum) -> None:
    """Whether a file's bytes are what was written; reads a large one in several threads."""
    if len(view) != row.size:
        raise DamagedError(f"{row.name} has {len(view)} bytes of {row.size}")
    if not _are_written(view, _spans(row)):
        raise DamagedError(f"{row.name} is not what was written")


def _are_written(view: memoryview, spans: Sequence[tuple[int, int, int]]) -> bool:
    def is_written(span: tuple[int, int, int]) -> bool:
        begin, end, crc = span
        return zlib.crc32(view[begin:end]) == crc

    if len(view) <= PIECE or len(spans) < 2:  # threads take longer to start than a piece to read
        return all(map(is_written, spans))
    from concurrent.futures import ThreadPoolExecutor  # brings logging along

    with ThreadPoolExecutor(THREADS) as pool:
        return all(pool.map(is_written, spans))


def remove(folder: Path, mark: Mark) -> None:
    """Remove a checkpoint, COMMIT first: without it the rest is not a checkpoint."""
    place = folder / mark.name
    (place / COMMIT).unlink(missing_ok=True)
    shutil.rmtree(place, ignore_errors=True)


def _crc(record: Any) -> int:
    return zlib.crc32(json.dumps(record, sort_keys=True).encode())


def _spans(row: FileSum) -> list[tuple[int, int, int]]:
    spans, at = [], 0
    for length, crc in row.pieces:
        spans.append((at, at + length, crc))
        at += length
    return spans
