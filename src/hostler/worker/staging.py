"""A copy of a folder that is known to be what the folder held at one moment."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from hostler.records.tree import TreeScan


def same(folder: Path, copied: Path, rows: TreeScan) -> bool:
    """Whether the scanned files hold the very bytes that were copied."""
    names = [row.name for row in rows.rows if not row.link]
    try:
        return all(_equal(folder / name, copied / name) for name in names)
    except FileNotFoundError:
        return False


def _equal(one: Path, other: Path) -> bool:
    """By bytes alone: the standard comparison remembers its answer by size and time."""
    with open(one, "rb", buffering=0) as a, open(other, "rb", buffering=0) as b:
        while True:
            piece = a.read(1 << 20)
            if piece != b.read(1 << 20):
                return False
            if not piece:
                return True


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


def _stays(folder: Path, link: Path) -> bool:
    return link.resolve().is_relative_to(folder.resolve())
