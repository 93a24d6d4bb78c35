"""A folder as a list of files: scanned, compared, hashed; names that lead out of it are refused."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath, PurePosixPath
from typing import Any

from hostler.errors import DamagedError
from hostler.frozen import dataclass


@dataclass(frozen=True)
class FileRow:
    name: str  # relative, '/'-separated
    size: int
    mtime_ns: int
    inode: int
    mode: int
    link: str = ""  # target, for a symbolic link

    def record(self) -> dict[str, Any]:
        mode, mtime = self.mode & 0o777, self.mtime_ns
        return {"name": self.name, "size": self.size, "mode": mode, "mtime": mtime, "link": self.link}

    def as_list(self) -> list[Any]:
        """All of it, as JSON has it."""
        return [self.name, self.size, self.mtime_ns, self.inode, self.mode, self.link]

    @classmethod
    def from_list(cls, values: Sequence[Any]) -> FileRow:
        name, size, mtime_ns, inode, mode, link = values
        return cls(str(name), int(size), int(mtime_ns), int(inode), int(mode), str(link))


@dataclass(frozen=True)
class TreeScan:
    """Equal scans before and after a copy mean that nobody wrote in between."""

    rows: tuple[FileRow, ...]

    @property
    def newest(self) -> float:
        """Youngest modification in seconds since 1970; 0 for an empty folder."""
        return max((row.mtime_ns for row in self.rows), default=0) / 1e9

    @property
    def size(self) -> int:
        return sum(row.size for row in self.rows)


def scan(folder: Path) -> TreeScan:
    return TreeScan(tuple(sorted(_walk(str(folder), ""), key=lambda row: row.name)))


def hash_file(path: Path) -> str:
    digest = hashlib.sha256()
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def inside(name: str, below: PurePath = PurePath()) -> PurePosixPath:
    """The name as a relative path, if it stays inside its folder; DamagedError otherwise."""
    path = PurePosixPath(name)
    depth = len(below.parts)
    for part in path.parts:
        depth += -1 if part == ".." else 1
        if depth < 0:
            break
    if path.is_absolute() or depth < 0 or "\0" in name or (not below.parts and ".." in path.parts):
        raise DamagedError(f"{name!r} leads out of its folder")
    return path


def _walk(root: str, prefix: str) -> Iterator[FileRow]:
    try:
        entries = list(os.scandir(os.path.join(root, prefix)))
    except FileNotFoundError:
        return
    for entry in entries:
        name = prefix + entry.name
        try:
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(root, name + "/")
                continue
            stat = entry.stat(follow_symlinks=False)
            link = os.readlink(entry.path) if entry.is_symlink() else ""
        except FileNotFoundError:
            continue
        if link or entry.is_file(follow_symlinks=False):
            yield FileRow(name, stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_mode, link)
