"""The one file of a checkpoint folder that is replaced by rename, faster than its name ever rests.

`last.pt`, written beside and renamed every half second, is never at rest as a name, but each version of it
is as a file: nothing writes to a version after it was replaced. A hard link holds one version; once that has
been at rest as long as any file must be, it is complete. This counts only if that file alone is replaced:
since the version was held, it was seen replaced twice, and no other file of the lump came, went or changed.
Two files that are replaced one after the other would be a mix of two moments.

At most two versions are held: one that is complete, and a newer one that is on the way to be.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostler.records.checkpoint.tree import FileRow, TreeScan

TWICE = 2  # replacements that show that a file is replaced alone


@dataclass(frozen=True)
class Version:
    """A version of the file, held by a hard link, and the rest of the lump beside it."""

    row: FileRow
    beside: TreeScan
    path: Path
    since: float  # by the clock
    units: frozenset[str] = frozenset()  # that were there: it may name one of them

    def is_intact(self) -> bool:
        """Whether nothing has written to it since it was held."""
        try:
            stat = os.stat(self.path)
        except OSError:
            return False
        return (stat.st_size, stat.st_mtime_ns) == (self.row.size, self.row.mtime_ns)


class ReplacedFile:
    def __init__(self, links: Path, source: Path, settle: float, slow: float) -> None:
        """`links` is a folder of its own for hard links, on the disk of `source`, the checkpoint folder.
        `slow`: bytes a second that even a stalling disk takes."""
        self._links, self._source, self._settle, self._slow = links, source, settle, slow
        self._possible = True  # the disk has hard links
        self._count = 0
        self.complete: Version | None = None
        self._held: Version | None = None
        self._replaced = 0  # how often since it was held
        self._seen: FileRow | None = None  # the file at the last look
        self._passing: frozenset[str] = frozenset()  # files of the last look that were not beside it

    def look(self, lump: TreeScan, units: Iterable[str], clock: float, wall: float) -> None:
        """Look at the lump of a living process that is not stopped, and at the keys of its units."""
        if self._held and not self._follow(self._held, lump):
            self._let_go()
        if self._held and self._has_rested(self._held, clock, wall):
            self._drop(self.complete)
            self.complete, self._held = self._held, None
        young = [row for row in lump.rows if wall - row.mtime_ns / 1e9 < self._settle]
        if self._held is None and self._possible and len(young) == 1 and not young[0].link:
            self._hold(young[0], lump, frozenset(units), clock)

    def usable(self, lump: TreeScan, units: Iterable[str]) -> Version | None:
        """The complete version, if the rest of the lump is still as it was beside it, and these units, which
        are complete, are all that it may name."""
        version = self.complete
        if version and set(version.beside.rows) <= set(lump.rows) and version.units <= set(units):
            return version if version.is_intact() else None
        return None

    def rest(self) -> None:
        """The lump is at rest: no version needs to be held."""
        self._let_go()
        self._drop(self.complete)
        self.complete = None

    def note(self) -> dict[str, Any]:
        """The complete version, for whoever starts after a kill."""
        if self.complete is None:
            return {}
        rows = [self.complete.row.as_list(), *(row.as_list() for row in self.complete.beside.rows)]
        return {"path": self.complete.path.name, "rows": rows, "units": sorted(self.complete.units)}

    def recall(self, note: Mapping[str, Any]) -> None:
        """Take a version over that a killed process has noted."""
        if note:
            row, *beside = (FileRow.from_list(values) for values in note["rows"])
            path, units = self._links / str(note["path"]), frozenset(note["units"])
            self.complete = Version(row, TreeScan(tuple(beside)), path, 0.0, units)

    def _follow(self, held: Version, lump: TreeScan) -> bool:
        """Whether the file is still replaced alone; counts its replacements."""
        now = {row.name: row for row in lump.rows}
        row, others = now.pop(held.row.name, None), held.beside.rows
        new = frozenset(now) - {other.name for other in others}
        lasting, self._passing = new & self._passing, new
        if lasting or row is None or any(now.get(other.name) != other for other in others):
            return False
        if row.inode == held.row.inode and row != held.row:
            return False  # rewritten in place
        self._replaced += row.inode != held.row.inode and row != self._seen
        self._seen = row
        return held.is_intact()

    def _has_rested(self, held: Version, clock: float, wall: float) -> bool:
        """Whether it is complete: at rest for longer than one write of it takes, and replaced alone."""
        age = min(clock - held.since, wall - held.row.mtime_ns / 1e9)
        return self._replaced >= TWICE and age >= self._settle + held.row.size / self._slow

    def _hold(self, row: FileRow, lump: TreeScan, units: frozenset[str], clock: float) -> None:
        self._count += 1
        path = self._links / str(self._count)
        try:
            self._links.mkdir(exist_ok=True)
            path.unlink(missing_ok=True)
            os.link(self._source / row.name, path)
        except FileNotFoundError:
            return
        except OSError:
            self._possible = False
            return
        beside = tuple(other for other in lump.rows if other != row)
        version = Version(row, TreeScan(beside), path, clock, units)
        if os.stat(path).st_ino == row.inode and version.is_intact():
            self._held, self._replaced, self._seen, self._passing = version, 0, row, frozenset()
        else:
            self._drop(version)

    def _let_go(self) -> None:
        self._drop(self._held)
        self._held = None

    def _drop(self, version: Version | None) -> None:
        if version:
            version.path.unlink(missing_ok=True)
