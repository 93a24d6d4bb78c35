"""A run's checkpoint folder: the library's checkpoints in it, the script's own files, and copies of both.

A checkpoint of the library with a COMMIT is whole and never changes: it is taken at once, as links where the
file system has them. One without is being written, or was when its process died: it is left alone. Other
files are the script's own; a copy of them counts only if it is known to be what they held at one moment.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Container, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from hostler.errors import DamagedError
from hostler.records.checkpoint import saved_folder
from hostler.records.checkpoint.saved_folder import COMMIT, FileSum, Mark
from hostler.records.checkpoint.tree import TreeScan


@dataclass(frozen=True)
class Split:
    whole: TreeScan  # files of the newest whole checkpoints
    others: TreeScan  # the script's own files

    @property
    def all(self) -> TreeScan:
        """All files that a checkpoint of the folder holds."""
        return TreeScan(tuple(sorted((*self.whole.rows, *self.others.rows), key=lambda row: row.name)))


def split(scanned: TreeScan) -> Split:
    newest: dict[str, Mark] = {}
    for row in scanned.rows:
        place = PurePosixPath(row.name)
        mark = saved_folder.mark_of(place.parent.name)
        if mark and place.name == COMMIT:
            above = str(place.parent.parent)
            newest[above] = max(newest.get(above, mark), mark)
    chosen = {f"{'' if above == '.' else above + '/'}{mark.name}/" for above, mark in newest.items()}
    whole = [row for row in scanned.rows if any(row.name.startswith(one) for one in chosen)]
    others = [row for row in scanned.rows if not _is_of_library(row.name)]
    return Split(TreeScan(tuple(whole)), TreeScan(tuple(others)))


def link(folder: Path, target: Path, rows: TreeScan) -> bool:
    """The files under `target` as well, without a copy where the disk can; False if one has vanished."""
    for row in rows.rows:
        to = target / row.name
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            os.link(folder / row.name, to)
        except FileNotFoundError:
            return False
        except OSError:
            shutil.copy2(folder / row.name, to)
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


def copy(folder: Path, target: Path, rows: TreeScan) -> bool:
    """Copy the scanned files; False if one vanished. Links inside stay links, others turn into files."""
    for row in rows.rows:
        source, to = folder / row.name, target / row.name
        to.parent.mkdir(parents=True, exist_ok=True)
        try:
            if row.link and _stays(folder, source):
                to.symlink_to(os.path.relpath(source.resolve(), source.parent.resolve()))
            elif row.link and not source.is_file():
                continue
            else:
                shutil.copyfile(source, to)
                to.chmod(row.mode & 0o777 if not row.link else 0o644)
                os.utime(to, ns=(row.mtime_ns, row.mtime_ns))
        except FileNotFoundError:
            return False
    return True


def same(folder: Path, copied: Path, rows: TreeScan) -> bool:
    """Whether the scanned files hold the very bytes that were copied."""
    names = [row.name for row in rows.rows if not row.link]
    try:
        return all(_equal(folder / name, copied / name) for name in names)
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


def _is_of_library(name: str) -> bool:
    return any(saved_folder.mark_of(part) for part in PurePosixPath(name).parent.parts)
