"""Files of a run's checkpoint folder, linked or copied to another folder, and checked there.

A checkpoint of the library with a COMMIT is whole and never changes: it is linked where the file system has
hard links, and every byte is checked. A copy of a file that may be rewritten counts only if the file holds
the same bytes a moment later.
"""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Container, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from hostler.errors import DamagedError
from hostler.records.checkpoint import saved_folder
from hostler.records.checkpoint.saved_folder import COMMIT, FileSum
from hostler.records.checkpoint.tree import FileRow, TreeScan


def link(folder: Path, target: Path, rows: TreeScan) -> bool:
    """The files under `target` as well, without a copy where the disk can; False if one has vanished."""
    return all(link_file(folder / row.name, target / row.name) for row in rows.rows)


def link_file(source: Path, to: Path) -> bool:
    """A file under another name, as a copy where the disk has no hard links; False if it has vanished."""
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.link(source, to)
    except FileNotFoundError:
        return False
    except OSError:
        shutil.copy2(source, to)
    return True


def check(folder: Path, rows: TreeScan, ranks: Container[int] | None = None) -> None:
    """DamagedError unless every byte of these checkpoints is what was written; of these ranks alone, where
    others wrote theirs on other machines."""
    for row in rows.rows:
        place = PurePosixPath(row.name)
        mark = saved_folder.mark_of(place.parent.name)
        if mark and place.name == COMMIT:
            saved = saved_folder.read(folder / place.parent.parent, mark)
            for file in saved.files:
                if ranks is None or saved_folder.rank_of(file.name) in ranks:
                    _check(saved.folder / file.name, file)


def newest_record(folder: Path) -> Mapping[str, Any]:
    """The COMMIT of the library's newest checkpoint in a folder; empty if there is none."""
    for mark in saved_folder.committed(folder):
        return saved_folder.read(folder, mark).record
    return {}


def copy_file(folder: Path, source: Path, to: Path, row: FileRow) -> bool:
    """Copy a file of the folder; False if it vanished. Links inside stay links, others turn into files."""
    to.parent.mkdir(parents=True, exist_ok=True)
    try:
        if row.link and _stays(folder, source):
            to.symlink_to(os.path.relpath(source.resolve(), source.parent.resolve()))
        elif not row.link or source.is_file():
            shutil.copyfile(source, to)
            to.chmod(row.mode & 0o777 if not row.link else 0o644)
            os.utime(to, ns=(row.mtime_ns, row.mtime_ns))
    except FileNotFoundError:
        return False
    return True


def is_as(path: Path, row: FileRow) -> bool:
    """Whether a file, or a copy of it, has the size and the time that were scanned."""
    try:
        stat = os.lstat(path)
    except OSError:
        return False
    return bool(row.link) or (stat.st_size, stat.st_mtime_ns) == (row.size, row.mtime_ns)


def checksum(path: Path) -> int:
    """crc32 of a file's bytes."""
    found = 0
    with open(path, "rb", buffering=0) as file:
        while piece := file.read(1 << 20):
            found = zlib.crc32(piece, found)
    return found


def same(path: Path, other: Path) -> bool:
    """Whether two files hold the same bytes; False if one has vanished."""
    try:
        return _equal(path, other)
    except FileNotFoundError:
        return False


def _equal(path: Path, other: Path) -> bool:
    """By bytes alone: the standard comparison remembers its answer by size and time."""
    with open(path, "rb", buffering=0) as a, open(other, "rb", buffering=0) as b:
        while True:
            piece = a.read(1 << 20)
            if piece != b.read(1 << 20):
                return False
            if not piece:
                return True


def _stays(folder: Path, link: Path) -> bool:
    return link.resolve().is_relative_to(folder.resolve())


def _check(path: Path, file: FileSum) -> None:
    try:
        saved_folder.check_file(path, file)
    except FileNotFoundError:
        raise DamagedError(f"{path.parent.name} has no {file.name}") from None
