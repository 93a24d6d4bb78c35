"""The one file of a checkpoint folder that is replaced by rename, faster than its name ever rests.

`last.pt`, written beside and renamed every half second, is never at rest as a name, but each version of it
is complete once it was replaced: nothing writes to it any more. A hard link holds one version until then.
This counts only if that file alone is replaced: it was seen replaced twice, and no other file of its group
came, went or changed meanwhile. Two files that are replaced one after the other would be a mix of two
moments.

At most two versions are held: one that is complete, and a newer one that is on the way to be. They stay until
something newer is safe, in the store or held otherwise: that the file rests for a moment makes nothing safe.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hostler.frozen import dataclass
from hostler.records.checkpoint.tree import FileRow, TreeScan

TWICE = 2  # replacements that show that a file is replaced alone


@dataclass(frozen=True)
class Version:
    """A version of the file, held by a hard link, and the rest of the lump beside it."""

    row: FileRow
    beside: TreeScan
    path: Path
    units: frozenset[str] = frozenset()  # that were there: it may name one of them

    def is_intact(self) -> bool:
        """Whether nothing has written to it since it was held."""
        try:
            stat = os.stat(self.path)
        except OSError:
            return False
        return (stat.st_size, stat.st_mtime_ns) == (self.row.size, self.row.mtime_ns)


class ReplacedFile:
    def __init__(self, links: Path, source: Path, settle: float) -> None:
        """`links` is a folder of its own for hard links, on the disk of `source`, the checkpoint folder."""
        self._links, self._source, self._settle = links, source, settle
        self._possible = True  # the disk has hard links
        self._count = 0
        self.complete: Version | None = None
        self._held: Version | None = None
        self._replaced = 0  # how often, with nothing else changed
        self._seen: FileRow | None = None  # the file at the last look
        self._passing: frozenset[str] = frozenset()  # files of the last look that were not beside it

    def look(self, lump: TreeScan, units: Iterable[str], wall: float) -> bool:
        """Look at the group of a living process that is not stopped, and at the keys of its units. Whether
        there is something new to note."""
        before = self.complete, self._held
        if self._held and not self._follow(self._held, lump):
            self._let_go()
        if self._held and self._is_done(self._held, lump):
            self._drop(self.complete)
            self.complete, self._held = self._held, None
        young = [row for row in lump.rows if wall - row.mtime_ns / 1e9 < self._settle]
        if self._held is None and self._possible and len(young) == 1 and not young[0].link:
            self._hold(young[0], lump, frozenset(units))
        return (self.complete, self._held) != before

    def usable(self, lump: TreeScan, units: Iterable[str]) -> Version | None:
        """The newest complete version, if the rest of the group is still as it was beside it, and these
        units, which are complete, are all that it may name."""
        held = self._held if self._held and self._is_done(self._held, lump) else None
        for version in filter(None, (held, self.complete)):
            fits = set(version.beside.rows) <= set(lump.rows) and version.units <= set(units)
            if fits and version.is_intact():
                return version
        return None

    @property
    def rows(self) -> list[FileRow]:
        """Versions whose bytes are held."""
        return [version.row for version in (self.complete, self._held) if version]

    def forget(self) -> bool:
        """No version needs to be held any more. Whether there was any."""
        before = self.complete, self._held
        self._let_go()
        self._drop(self.complete)
        self.complete = None
        return before != (None, None)

    def forget_before(self, row: FileRow) -> None:
        """The store has this version of the file: an earlier one is not needed."""
        complete = self.complete
        if complete and complete.row.name == row.name and complete.row.mtime_ns < row.mtime_ns:
            self._drop(complete)
            self.complete = None

    def note(self) -> dict[str, Any]:
        """The versions, for whoever starts after a kill."""
        held = self._held if self._replaced >= TWICE else None
        return {**_noted(self.complete), **({"held": _noted(held)} if held else {})}

    def recall(self, note: Mapping[str, Any]) -> None:
        """Take versions over that a killed process has noted."""
        self.complete, self._held = self._recalled(note), self._recalled(note.get("held", {}))
        self._replaced = TWICE if self._held else 0

    def _recalled(self, note: Mapping[str, Any]) -> Version | None:
        if "rows" not in note:
            return None
        row, *beside = (FileRow.from_list(values) for values in note["rows"])
        return Version(
            row, TreeScan(tuple(beside)), self._links / str(note["path"]), frozenset(note["units"])
        )

    def _follow(self, held: Version, lump: TreeScan) -> bool:
        """Whether the file is still replaced alone; counts its replacements."""
        now = {row.name: row for row in lump.rows}
        row, others = now.pop(held.row.name, None), held.beside.rows
        new = frozenset(now) - {file_row.name for file_row in others}
        lasting, self._passing = new & self._passing, new
        if lasting or row is None or any(now.get(file_row.name) != file_row for file_row in others):
            return False
        if row.inode == held.row.inode and row != held.row:
            return False  # rewritten in place
        self._replaced += row.inode != held.row.inode and row != self._seen
        self._seen = row
        return held.is_intact()

    def _is_done(self, held: Version, lump: TreeScan) -> bool:
        """Whether its writer has replaced it, and replaces it alone."""
        now = next((row for row in lump.rows if row.name == held.row.name), held.row)
        return self._replaced >= TWICE and now.inode != held.row.inode

    def _hold(self, row: FileRow, lump: TreeScan, units: frozenset[str]) -> None:
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
        beside = tuple(file_row for file_row in lump.rows if file_row != row)
        version = Version(row, TreeScan(beside), path, units)
        if os.stat(path).st_ino == row.inode and version.is_intact():
            self._held, self._seen, self._passing = version, row, frozenset()
        else:
            self._drop(version)

    def _let_go(self) -> None:
        self._drop(self._held)
        self._held, self._replaced = None, 0

    def _drop(self, version: Version | None) -> None:
        if version:
            version.path.unlink(missing_ok=True)


def _noted(version: Version | None) -> dict[str, Any]:
    if version is None:
        return {}
    rows = [version.row.as_list(), *(row.as_list() for row in version.beside.rows)]
    return {"path": version.path.name, "rows": rows, "units": sorted(version.units)}
