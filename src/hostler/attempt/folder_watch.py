"""The watch over a checkpoint folder while a script writes to it: which of its files are complete.

Files of the library and declared ones are complete as they are. A unit or the lump (`folder_parts.py`) is so
if nothing in it was younger than `settle` while the process was alive and not stopped, and if names, sizes,
mtimes, inodes and, a moment later, all bytes are still those of the copy: one long write into a file changes
its bytes and neither its size nor its mtime. After a kill only what had been seen at rest for longer than one
write of its largest file takes counts, and only as it was then. A file that is replaced by rename faster than
it rests counts by its versions (`replaced_file.py`).

The lump and the units of one checkpoint fit together: a pointer file names a unit that is there. So where the
lump is not complete, the last complete copy of it goes along, with the units that it was saved with. It is
kept on the local disk for this, as links and copies, if there are units.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostler.attempt import folder as files
from hostler.attempt import folder_parts
from hostler.attempt.folder_parts import LUMP, NOTHING, Declared, Parts
from hostler.attempt.replaced_file import ReplacedFile
from hostler.records.checkpoint.tree import FileRow, TreeScan, scan
from hostler.records.run import handoff

SLOW = 50e6  # bytes a second that even a stalling disk takes: how long one write of a file can last
SMALL = 64e6  # bytes of a restored lump that is copied before the script may rewrite it
RESTLESS = 10  # times the resting time after which a lump that never rested is spoken of


@dataclass(frozen=True)
class Clocks:
    clock: Callable[[], float] = time.monotonic
    wall: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep


@dataclass(frozen=True)
class Piece:
    """A file of a checkpoint, and where its bytes are."""

    row: FileRow  # as it was in the checkpoint folder
    root: Path
    name: str  # from the root on
    copied: bool  # it may be rewritten in place: linking it is not enough
    key: str | None  # of its unit, or the lump's; None if it is complete by its writer's word

    @property
    def path(self) -> Path:
        return self.root / self.name


@dataclass(frozen=True)
class Choice:
    """The files of one checkpoint."""

    library: TreeScan = NOTHING
    pieces: tuple[Piece, ...] = ()
    rested: Mapping[str, TreeScan] = field(default_factory=dict)  # groups that are at rest as a whole
    missing: tuple[FileRow, ...] = ()  # files that are there, and not known to be complete
    aged: bool = False  # its lump is an earlier one
    lacks_lump: bool = False  # there is one, and no complete copy of it is here

    @property
    def rows(self) -> TreeScan:
        return folder_parts.joined(self.library, TreeScan(tuple(piece.row for piece in self.pieces)))

    @property
    def has_lump(self) -> bool:
        return any(piece.key == LUMP for piece in self.pieces)


class FolderWatch:
    def __init__(
        self,
        folder: Path,
        clocks: Clocks = Clocks(),
        *,
        settle: float,
        steady: Callable[[], bool],
        say: Callable[[str], None],
        declared: Callable[[], Declared] = Declared,
        memory: Mapping[str, Any] | None = None,
        note: Callable[[dict[str, Any]], None] = lambda memory: None,
    ) -> None:
        """`steady`: whether the process is alive and not stopped. `declared`: the word of its writers.
        `memory`: a `note` of an earlier watch over the same folder; without one, all that lies there was
        restored and is complete. `note` hears of each change of what is known to be complete."""
        self.folder, self._clocks, self._settle, self._steady = folder, clocks, settle, steady
        self._say, self._declared, self._note = say, declared, note
        self._scanned = scan(folder)
        self.moved = clocks.clock()  # when the folder was last seen changed
        self._rewritten: set[str] = set((memory or {}).get("rewritten", ()))
        self._replaced = ReplacedFile(folder.with_name("versions"), folder, settle, SLOW)
        self._kept: tuple[Piece, ...] = ()
        self._verified: set[FileRow] = set()  # read twice, with a pause between
        self._vanished: dict[str, float] = {}  # group → when a file of it was seen to have gone
        self._manifests: dict[FileRow, Mapping[str, int]] = {}
        found = self.parts()
        self._groups = found.groups
        self._rested: dict[str, TreeScan] = dict(self._groups)
        if memory is not None:
            self._recall(memory)
        else:
            self._keep_restored(found)
            self._write_note()
        self._restless: float | None = None  # since when the lump has not been at rest
        self._told = False

    def parts(self, scanned: TreeScan | None = None) -> Parts:
        """The files of the folder, as they were at the last look, by kind."""
        rows = self._scanned if scanned is None else scanned
        return folder_parts.parts(rows, self._declared(), self._rewritten, self._manifest)

    def look(self) -> Parts:
        """Look at the folder, and learn what is at rest in it."""
        self.scan()
        found = self.parts()
        rested = self._rested
        changed = {
            k for k, rows in found.units.items() if folder_parts.was_rewritten(rested.get(k, NOTHING), rows)
        }
        if changed:
            self._rewritten |= changed
            found = self.parts()
        self._see_vanished(found.groups)
        if self._steady():
            self._learn(found)
        return found

    def scan(self) -> TreeScan:
        now = scan(self.folder)
        if now != self._scanned:
            self._scanned, self.moved = now, self._clocks.clock()
        return now

    def rows(self) -> list[FileRow]:
        """All files whose bytes are here, in the folder or kept."""
        version = self._replaced.complete
        held = [version.row] if version else []
        return [*self._scanned.rows, *held, *(piece.row for piece in self._kept)]

    def choice(self, found: Parts, *, running: bool = True) -> Choice:
        """The complete files. `running`: what is at rest now counts, too."""
        running = running and self._steady()
        pieces = [self._piece(row, None) for row in found.declared.rows]
        rested: dict[str, TreeScan] = {}
        for key, rows in found.units.items():
            whole = self._whole(key, rows, running)
            pieces += [self._piece(row, key) for row in whole.rows]
            if whole == rows and running:
                rested[key] = rows
        complete = {piece.key for piece in pieces if piece.key}
        lump, aged = self._lump(found.lump, complete, running), False
        if lump is None and (aged := self._is_kept_intact()):
            there = {piece.row.name for piece in pieces}
            lump = [piece for piece in self._kept if piece.row.name not in there]
        elif lump and running and self._rests(LUMP, found.lump):
            rested[LUMP] = found.lump
        pieces += lump or []
        taken = {piece.row for piece in pieces}
        missing = tuple(row for rows in found.groups.values() for row in rows.rows if row not in taken)
        return Choice(found.library, tuple(pieces), rested, missing, aged, lump is None)

    def everything(self) -> Choice:
        """The whole folder: its process has ended by itself."""
        self.scan()
        found = self.parts()
        rows = folder_parts.joined(found.declared, *found.groups.values()).rows
        return Choice(found.library, tuple(Piece(row, self.folder, row.name, True, LUMP) for row in rows))

    def stage(self, choice: Choice, staging: Path, *, settled: bool) -> bool:
        """Bring the files to `staging`, the library's aside, as they were at one moment; False if they did
        not hold still. `settled`: somebody may write to them meanwhile."""
        for piece in choice.pieces:
            to = staging / piece.row.name
            copied = piece.copied or piece.row.link
            if not (
                files.copy_file(piece.root, piece.path, to, piece.row)
                if copied
                else files.link_file(piece.path, to)
            ):
                return False
        return not settled or self._held_still(choice, staging)

    def is_unchanged(self, choice: Choice, staging: Path) -> bool:
        """Whether nobody has written to files that were linked there."""
        linked = (piece for piece in choice.pieces if not piece.copied and piece.key is not None)
        return all(files.is_as(staging / piece.row.name, piece.row) for piece in linked)

    def keep(self, choice: Choice, staging: Path) -> None:
        """After a save: keep its lump, if it goes with other files, and its units. `staging` may be taken."""
        self._verified = {piece.row for piece in choice.pieces if piece.key is not None}
        self._rested.update(choice.rested)
        if not choice.aged and not choice.lacks_lump:
            self._forget_kept()
            own = [piece for piece in choice.pieces if piece.key is not None]
            if choice.has_lump and (choice.library.rows or any(p.key != LUMP for p in choice.pieces)):
                names = {piece.row.name for piece in own}
                for row in scan(staging).rows:
                    if row.name not in names:
                        (staging / row.name).unlink()
                staging.rename(self._kept_folder)
                self._kept = tuple(self._kept_piece(piece.row, piece.key or LUMP) for piece in own)
        self._write_note()

    @property
    def _kept_folder(self) -> Path:
        return self.folder.with_name("kept")

    def _forget_kept(self) -> None:
        shutil.rmtree(self._kept_folder, ignore_errors=True)
        self._kept = ()

    def _kept_piece(self, row: FileRow, key: str) -> Piece:
        return Piece(row, self._kept_folder, row.name, False, key)

    def _keep_restored(self, found: Parts) -> None:
        """Keep what was restored, before a script changes it."""
        self._forget_kept()
        beside = found.units or found.library.rows or found.declared.rows
        if not found.lump.rows or not beside or found.lump.size > SMALL:
            return
        lump = [self._piece(row, LUMP, copied=True) for row in found.lump.rows]
        linked = [(row, key) for key, rows in found.units.items() for row in rows.rows if not row.link]
        self._kept_folder.mkdir()
        try:
            whole = self.stage(Choice(pieces=tuple(lump)), self._kept_folder, settled=False)
            for row, _ in linked:
                to = self._kept_folder / row.name
                to.parent.mkdir(parents=True, exist_ok=True)
                os.link(self.folder / row.name, to)
        except OSError:  # no room, or no hard links: the lump must come to rest again
            whole = False
        if whole:
            kept = [*((piece.row, LUMP) for piece in lump), *linked]
            self._kept = tuple(self._kept_piece(row, key) for row, key in kept)
        else:
            self._forget_kept()

    def _manifest(self, mark: FileRow) -> Mapping[str, int]:
        """Names and sizes that a mark has for the files of its unit; none if it is older than that."""
        if mark not in self._manifests:
            found = handoff.read(self.folder / mark.name) or {}
            self._manifests[mark] = {str(k): int(v) for k, v in found.get("files", {}).items()}
        return self._manifests[mark]

    def _learn(self, found: Parts) -> None:
        learned = False
        for key, rows in found.groups.items():
            largest = max(row.size for row in rows.rows)
            if self._rest(key, rows) >= self._settle + largest / SLOW and self._rested.get(key) != rows:
                self._rested[key], learned = rows, True
        clock, wall, before = self._clocks.clock(), self._clocks.wall(), self._replaced.complete
        if not found.lump.rows or self._rests(LUMP, found.lump):
            self._replaced.rest()
            self._restless = None
        else:
            self._replaced.look(found.lump, found.units, clock, wall)
            self._tell_restless(found, clock)
        if learned or self._replaced.complete is not before:
            self._write_note()

    def _see_vanished(self, groups: Mapping[str, TreeScan]) -> None:
        """Remember when a file has gone: what is being removed has old files, and is not at rest."""
        now = self._clocks.clock()
        for key in {*groups, LUMP}:
            names = {row.name for row in groups.get(key, NOTHING).rows}
            if any(row.name not in names for row in self._groups.get(key, NOTHING).rows):
                self._vanished[key] = now
        self._groups = dict(groups)
        self._rested = {key: rows for key, rows in self._rested.items() if key in groups}

    def _rest(self, key: str, rows: TreeScan) -> float:
        """Seconds since anything happened to these files."""
        gone = self._clocks.clock() - self._vanished.get(key, float("-inf"))
        return min(self._clocks.wall() - rows.newest, gone)

    def _rests(self, key: str, rows: TreeScan) -> bool:
        return self._rest(key, rows) >= self._settle

    def _whole(self, key: str, rows: TreeScan, running: bool) -> TreeScan:
        """Files of a group that are complete: all if it is at rest, else those that were, if untouched."""
        if running and self._rests(key, rows):
            return rows
        before = self._rested.get(key, NOTHING)
        return before if folder_parts.holds(rows, before) else NOTHING

    def _lump(self, rows: TreeScan, complete: set[str], running: bool) -> list[Piece] | None:
        """The lump, complete; None if it is not, and no version of its only changing file is."""
        whole = self._whole(LUMP, rows, running)
        if whole.rows or (not rows.rows and self._rests(LUMP, rows)):
            return [self._piece(row, LUMP, copied=True) for row in whole.rows]
        version = self._replaced.usable(rows, complete)
        if version is None:
            return None
        beside = [self._piece(row, LUMP, copied=True) for row in version.beside.rows]
        return [Piece(version.row, version.path.parent, version.path.name, False, LUMP), *beside]

    def _piece(self, row: FileRow, key: str | None, *, copied: bool = False) -> Piece:
        return Piece(row, self.folder, row.name, copied, key)

    def _is_kept_intact(self) -> bool:
        """Whether the last complete lump is here, and nobody has written to the units beside it."""
        return bool(self._kept) and all(files.is_as(piece.path, piece.row) for piece in self._kept)

    def _held_still(self, choice: Choice, staging: Path) -> bool:
        fresh = [piece for piece in choice.pieces if self._is_to_verify(piece)]
        if not fresh:
            return True
        linked = [piece for piece in fresh if not piece.copied]
        before = [files.checksum(staging / piece.row.name) for piece in linked]
        self._clocks.pause(
            self._settle / 8
        )  # a write that the kernel holds back goes on at least every 200 ms
        copied = (piece for piece in fresh if piece.copied)
        if not all(files.same(piece.path, staging / piece.row.name) for piece in copied):
            return False
        if [files.checksum(staging / piece.row.name) for piece in linked] != before:
            return False
        now = self.parts(scan(self.folder))
        there = {row for rows in now.groups.values() for row in rows.rows}
        own = {piece.row for piece in choice.pieces if piece.key is not None and piece.root == self.folder}
        return own <= there and all(now.groups.get(key) == rows for key, rows in choice.rested.items())

    def _is_to_verify(self, piece: Piece) -> bool:
        """Whether its bytes are not known to hold still: neither declared, nor linked and read before."""
        verified = not piece.copied and piece.row in self._verified
        return piece.key is not None and not piece.row.link and not verified

    def _tell_restless(self, found: Parts, clock: float) -> None:
        """Say once that the script writes so often that its files are never complete."""
        if self._restless is None:
            self._restless = clock
        busy = self._replaced.usable(found.lump, found.units) is None
        if self._told or not busy or clock - self._restless < RESTLESS * self._settle:
            return
        self._told = True
        name = max(found.lump.rows, key=lambda row: row.mtime_ns).name
        self._say(
            f"{name} is rewritten so often that it never rests for {self._settle:g} s, and is not saved: "
            "write to a temporary name, then rename; or write each save to a name with its step, like "
            "checkpoint-20.pt"
        )

    def _write_note(self) -> None:
        self._note(
            {
                "rested": {key: _as_lists(rows.rows) for key, rows in self._rested.items()},
                "rewritten": sorted(self._rewritten),
                "version": self._replaced.note(),
                "kept": _by_key(self._kept),
            }
        )

    def _recall(self, memory: Mapping[str, Any]) -> None:
        rested = memory.get("rested", {})
        self._rested = {str(key): _as_scan(rows) for key, rows in rested.items()}
        self._replaced.recall(memory.get("version", {}))
        self._kept = tuple(
            self._kept_piece(row, str(key))
            for key, rows in memory.get("kept", {}).items()
            for row in _as_scan(rows).rows
        )


def _by_key(pieces: Iterable[Piece]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for piece in pieces:
        found.setdefault(str(piece.key), []).append(piece.row.as_list())
    return found


def _as_lists(rows: Iterable[FileRow]) -> list[Any]:
    return [row.as_list() for row in rows]


def _as_scan(rows: Iterable[Any]) -> TreeScan:
    return TreeScan(tuple(FileRow.from_list(row) for row in rows))
