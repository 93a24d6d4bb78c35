"""Whether a folder is as it was when it was last walked, told by stats alone.

A file that was written to has another stamp, a folder in which something came or went has another time: if
all are as they were, walking it again would find the same. What changed within the last seconds is never
trusted, because a clock may be too coarse to show the next change.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostler.fleet.snapshot.tree import FILE, FOLDER, Tree

SETTLED = 2.0  # seconds


@dataclass(frozen=True)
class Glance:
    """Paths and what their stats were: of files all that a write changes, of folders and rules their time."""

    files: tuple[tuple[str, int, int, int], ...]  # path, mtime_ns, ctime_ns, inode
    folders: tuple[tuple[str, int], ...]  # path, mtime_ns; -1: not there

    def holds(self) -> bool:
        """Nothing has changed since."""
        try:
            found = list(map(os.lstat, [file[0] for file in self.files]))
        except OSError:
            return False
        if any(
            (f.st_mtime_ns, f.st_ctime_ns, f.st_ino) != (was[1], was[2], was[3])
            for f, was in zip(found, self.files, strict=True)
        ):
            return False
        return all(_time(path) == was for path, was in self.folders)

    def to_json(self) -> list[Any]:
        return [self.files, self.folders]


def of(tree: Tree, now: float) -> Glance | None:
    """A glance at a tree that was just walked; None where it is too young to be trusted."""
    root = str(tree.root)
    shown = [node for node in tree.nodes if node.kind == FILE]
    folders = ["", *(node.name for node in tree.nodes if node.kind == FOLDER)]
    times = [*(_stamp(root, name) for name in folders), *((path, _time(path)) for path in _rules(tree.root))]
    if now - max([tree.newest, *(time / 1e9 for _, time in times)]) < SETTLED:
        return None
    return Glance(tuple((f"{root}/{node.name}", *node.stamp) for node in shown), tuple(times))


def from_json(value: Sequence[Any]) -> Glance:
    files, folders = value
    return Glance(tuple(map(tuple, files)), tuple(map(tuple, folders)))


def _rules(root: Path) -> list[str]:
    """What decides which files belong to the folder, and is no part of it: git's, up to its top."""
    found: list[str] = []
    for folder in (root, *root.parents):
        found.append(f"{folder}/.gitignore")
        if (folder / ".git").exists():
            return [*found, f"{folder}/.git/index", f"{folder}/.git/info/exclude"]
    return []


def _stamp(root: str, name: str) -> tuple[str, int]:
    path = f"{root}/{name}" if name else root
    return path, _time(path)


def _time(path: str) -> int:
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return -1
