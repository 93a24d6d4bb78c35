"""The last complete lump of a checkpoint folder, with the units it was saved with, kept on the local disk.

A pointer file names a unit that is there, so lump and units of one checkpoint fit together. While the lump is
being rewritten the kept one goes along with newer units. Files that are rewritten in place are copied, units
are linked.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hostler.attempt import folder as files
from hostler.attempt.folder_parts import LUMP, Parts
from hostler.frozen import dataclass
from hostler.records.checkpoint.tree import FileRow, scan

SMALL = 64e6  # bytes of a restored lump that is copied before the script may rewrite it


@dataclass(frozen=True)
class Piece:
    """A file of a checkpoint, and where its bytes are."""

    row: FileRow  # as it was in the checkpoint folder
    root: Path
    name: str  # from the root on
    copied: bool  # it may be rewritten in place: linking it is not enough
    key: str | None  # of its unit, or the lump's; None if it is complete by its writer's word
    done: bool = False  # its writer is done with it, and may have removed it by now
    log: bool = False  # it grows all the time: not progress by itself

    @property
    def path(self) -> Path:
        return self.root / self.name


class KeptLump:
    def __init__(self, folder: Path) -> None:
        """`folder`: of the checkpoint; the kept files lie beside it."""
        self._folder, self._place = folder, folder.with_name("kept")
        self.pieces: tuple[Piece, ...] = ()

    def intact(self) -> list[Piece]:
        """The kept files; none if somebody has written to a unit among them."""
        return list(self.pieces) if all(files.is_as(piece.path, piece.row) for piece in self.pieces) else []

    def take(self, pieces: Iterable[Piece], staging: Path) -> None:
        """Keep these files of a checkpoint that was staged; its folder is taken."""
        kept = [(piece.row, piece.key or LUMP) for piece in pieces if piece.key is not None]
        names = {row.name for row, _ in kept}
        for row in scan(staging).rows:
            if row.name not in names:
                (staging / row.name).unlink()
        staging.rename(self._place)
        self._set(kept)

    def take_restored(self, found: Parts) -> None:
        """Keep what was restored, before a script changes it."""
        self.forget()
        both = {key: rows for key, rows in found.rewritten.items() if rows.rows}
        beside = found.units or found.library.rows or found.declared.rows or len(both) > 1
        if not both or not beside or sum(rows.size for rows in both.values()) > SMALL:
            return
        lump = [(row, key) for key, rows in both.items() for row in rows.rows]
        linked = [(row, key) for key, rows in found.units.items() for row in rows.rows if not row.link]
        self._place.mkdir()
        try:
            whole = all(
                files.copy_file(self._folder, self._folder / row.name, self._place / row.name, row)
                for row, _ in lump
            )
            for row, _ in linked:
                to = self._place / row.name
                to.parent.mkdir(parents=True, exist_ok=True)
                os.link(self._folder / row.name, to)
        except OSError:  # no room, or no hard links: the lump must come to rest again
            whole = False
        if whole:
            self._set([*lump, *linked])
        else:
            self.forget()

    def forget(self) -> None:
        shutil.rmtree(self._place, ignore_errors=True)
        self.pieces = ()

    def note(self) -> dict[str, list[Any]]:
        """The files by group, for whoever starts after a kill."""
        found: dict[str, list[Any]] = {}
        for piece in self.pieces:
            found.setdefault(str(piece.key), []).append(piece.row.as_list())
        return found

    def recall(self, note: dict[str, list[Any]]) -> None:
        """Take over the files that a killed process has noted."""
        self._set((FileRow.from_list(row), str(key)) for key, rows in note.items() for row in rows)

    def _set(self, kept: Iterable[tuple[FileRow, str]]) -> None:
        self.pieces = tuple(Piece(row, self._place, row.name, False, key) for row, key in kept)
