"""The watch over a checkpoint folder while a script writes to it: which of its files are complete.

Files of the library and declared ones are complete as they are. A unit or the lump (`folder_parts.py`) is so
if it has been at rest for `settle` (`rest.py`), and if names, sizes, mtimes, inodes and, a moment later, all
bytes are still those of the copy: one long write into a file changes its bytes and neither its size nor its
mtime. A unit is also complete once its writer has begun the next one.
After a kill what had been at rest for longer than one write of its largest file takes counts, and only as it
was then. A file that is replaced by rename faster than it rests counts by its versions (`replaced_file.py`),
a folder that never rests by copies from between two saves (`still_copy.py`).

The lump and the units of one checkpoint fit together: a pointer file names a unit that is there. So where the
lump is not complete, the last complete copy of it goes along, with the units that it was saved with. It is
kept on the local disk for this (`kept_lump.py`), if there are units.

A log beside them that grows all the time keeps nothing from being complete: it goes along as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import Any

from hostler.attempt import folder as files
from hostler.attempt import folder_parts
from hostler.attempt.folder_parts import BEST, LUMP, NOTHING, Declared, Parts
from hostler.attempt.kept_lump import KeptLump, Piece
from hostler.attempt.replaced_file import ReplacedFile
from hostler.attempt.rest import Clocks, Rest
from hostler.attempt.save_rhythm import QUIET, SaveRhythm
from hostler.attempt.still_copy import StillCopies
from hostler.frozen import dataclass
from hostler.records.checkpoint.tree import FileRow, TreeScan, scan
from hostler.records.run import handoff

SLOW = 50e6  # bytes a second that even a stalling disk takes: how long one write of a file can last
NAMED = 3  # files that a message names
OFTEN = 0.1  # seconds between two looks at a folder that does not rest: there are but moments between saves
LATE = 0.002  # seconds that a look comes after the moment that it is for
RESTLESS = 10  # times the resting time after which a lump that never rested is spoken of


@dataclass(frozen=True)
class Choice:
    """The files of one checkpoint."""

    library: TreeScan = NOTHING
    pieces: tuple[Piece, ...] = ()
    rested: Mapping[str, TreeScan] = field(default_factory=dict)  # groups that are at rest as a whole
    missing: tuple[FileRow, ...] = ()  # files that are there, and not known to be complete
    aged: bool = False  # its lump is an earlier one
    lacks: frozenset[str] = frozenset()  # of lump and best, what is there without a complete copy

    @property
    def rows(self) -> TreeScan:
        return folder_parts.joined(self.library, TreeScan(tuple(piece.row for piece in self.pieces)))

    @property
    def progress(self) -> TreeScan:
        """The files that a training may go on from: all but logs."""
        own = TreeScan(tuple(piece.row for piece in self.pieces if not piece.log))
        return folder_parts.joined(self.library, own)

    @property
    def rewritten(self) -> set[str]:
        """Lump and best, as far as it has them."""
        return {piece.key for piece in self.pieces if piece.key in (LUMP, BEST)}


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
        still_max: float = 0.0,
        memory: Mapping[str, Any] | None = None,
        note: Callable[[dict[str, Any]], None] = lambda memory: None,
    ) -> None:
        """`steady`: whether the process is alive, and neither stopped nor being killed. `declared`: the word
        of its writers. `still_max`: bytes of a folder that never rests, up to which it is copied between two
        saves.
        `memory`: a `note` of an earlier watch over the same folder; without one, all that lies there was
        restored and is complete. `note` hears of each change of what is known to be complete."""
        self.folder, self._clocks, self._settle = folder, clocks, settle
        self._rest = Rest(clocks, settle, steady)
        self._say, self._declared, self._note = say, declared, note
        self._scanned = scan(folder)
        self.moved = clocks.clock()  # when the folder was last seen changed
        self._rewritten: set[str] = set((memory or {}).get("rewritten", ()))
        self._growing: set[str] = set((memory or {}).get("growing", ()))  # names of logs
        self._noted_growing = set(self._growing)
        versions = {LUMP: folder.with_name("versions"), BEST: folder.with_name("best-versions")}
        self._replaced = {key: ReplacedFile(place, folder, settle) for key, place in versions.items()}
        self._still = StillCopies(folder, folder.with_name("still"), still_max, clocks.clock)
        self._rhythm, self._at_edge = SaveRhythm(settle), False  # load decides whether a save is caught
        self._kept = KeptLump(folder)
        self._verified: set[FileRow] = set()  # read twice, with a pause between
        self._manifests: dict[FileRow, Mapping[str, int]] = {}
        parts = self.parts()
        self._groups = parts.groups
        self._rested: dict[str, TreeScan] = dict(self._groups)
        if memory is not None:
            self._recall(memory)
        else:
            self._kept.take_restored(parts)
            self._write_note()
        self._still.remove_older()
        self._rhythm.look(self._groups, None)
        self._is_restless = False  # it is worth looking often
        self._restless: dict[str, float] = {}  # since when lump and best have not been at rest
        self._told = False

    def parts(self, scanned: TreeScan | None = None) -> Parts:
        """The files of the folder, as they were at the last look, by kind."""
        rows = self._scanned if scanned is None else scanned
        if not rows.rows:  # as of most short runs, always
            return Parts()
        return folder_parts.parts(rows, self._declared(), self._rewritten, self._manifest, self._growing)

    def look(self) -> Parts:
        """Look at the folder, and learn what is at rest in it."""
        self._rest.begin_look()
        self.scan()
        self._see_ended_logs()
        parts = self.parts()
        rested = self._rested
        changed = {
            k for k, rows in parts.units.items() if folder_parts.was_rewritten(rested.get(k, NOTHING), rows)
        }
        if changed:
            self._rewritten |= changed
            parts = self.parts()
        self._rest.see_vanished(self._groups, parts.groups, self._growing)
        self._groups = dict(parts.groups)
        self._rested = {key: rows for key, rows in self._rested.items() if key in parts.groups}
        if self._rest.is_steady():
            self._learn(parts)
        return parts

    def expect_look(self, within: float) -> None:
        """The next look comes after so many seconds, unless we are stopped, and the process with us."""
        self._rest.expect_look(within)

    def next_look(self) -> float:
        """Seconds after which it is worth looking again at a folder that does not rest: once nobody has
        written to it for so long that it may be between two saves; inf for one that does."""
        if not self._is_restless:
            return float("inf")
        age = self._clocks.wall() - self._scanned.newest
        return min(QUIET - age + LATE, OFTEN) if 0 <= age < QUIET else OFTEN

    def _see_ended_logs(self) -> None:
        """Forget logs that have come to rest, or are gone."""
        wall = self._clocks.wall()
        self._growing &= {r.name for r in self._scanned.rows if wall - r.mtime_ns / 1e9 < self._settle}
        if self._growing != self._noted_growing:
            self._write_note()

    def learn_of_dead(self, alive: float) -> None:
        """Learn what had come to rest when the process, dead by now, is last known to have lived: at a time
        that is given, or when it wrote to the folder, as far as the watch saw it run until then: whoever
        started it may live on, and print. A folder in which names came or went is not at rest."""
        parts = self.parts()
        alive = self._rest.seen_alive(min(max(alive, self._scanned.newest), self._clocks.wall()))
        for key, rows in parts.groups.items():
            rest = alive - max(rows.newest, self._changed(rows))
            if rest >= self._settle + max(row.size for row in rows.rows) / SLOW:
                self._rested[key] = rows

    def _changed(self, rows: TreeScan) -> float:
        """When a name last came or went in the folders of these files."""
        folders = {folder for row in rows.rows for folder in folder_parts.folders_of(row.name)}
        try:
            return max(((self.folder / folder).stat().st_mtime for folder in folders), default=0.0)
        except OSError:
            return float("inf")

    def scan(self) -> TreeScan:
        now = scan(self.folder)
        if now != self._scanned:
            before = {row.name: row for row in self._scanned.rows}
            pairs = [(before[row.name], row) for row in now.rows if row.name in before]
            self._growing |= {row.name for old, row in pairs if folder_parts.is_appended(old, row)}
            self._growing -= {row.name for old, row in pairs if row.size < old.size}
            self._scanned, self.moved = now, self._clocks.clock()
        return now

    def rows(self) -> list[FileRow]:
        """All files whose bytes are here, in the folder or kept."""
        held = [row for replaced in self._replaced.values() for row in replaced.rows]
        return [*self._scanned.rows, *held, *self._still.rows(), *(piece.row for piece in self._kept.pieces)]

    def choice(self, found: Parts, *, running: bool = True) -> Choice:
        """The complete files. `running`: what is at rest now counts, too."""
        running = running and self._rest.is_steady()
        pieces = [self._piece(row, None) for row in found.declared.rows]
        pieces += [replace(self._piece(row, None, copied=True), log=True) for row in found.logs.rows]
        rested: dict[str, TreeScan] = {}
        done = folder_parts.succeeded(found.units, self._changed)
        for key, rows in found.units.items():
            whole = rows if key in done else self._whole(key, rows, running)
            pieces += [Piece(row, self.folder, row.name, False, key, key in done) for row in whole.rows]
            if whole == rows and running and key not in done:
                rested[key] = rows
        complete = {piece.key for piece in pieces if piece.key}
        lacking: set[str] = set()
        for key, rows in found.rewritten.items():
            own = self._rewritten_now(key, rows, complete, running)
            pieces += own or []
            if own is None:
                lacking.add(key)
            elif own and running and self._rest.is_reached(key, rows):
                rested[key] = rows
        pieces, earlier = self._with_earlier(pieces, lacking, self._still_pieces(found))
        taken = {piece.row for piece in pieces}
        missing = tuple(row for rows in found.groups.values() for row in rows.rows if row not in taken)
        lacks = frozenset(lacking - {piece.key for piece in earlier})
        aged = bool(earlier) and (LUMP in lacking or LUMP in {piece.key for piece in earlier})
        return Choice(found.library, tuple(pieces), rested, missing, aged, lacks)

    def everything(self) -> Choice:
        """The whole folder: its process has ended by itself."""
        self.scan()
        parts = self.parts()
        rows = folder_parts.joined(parts.declared, parts.logs, *parts.groups.values()).rows
        return Choice(parts.library, tuple(Piece(row, self.folder, row.name, True, LUMP) for row in rows))

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
            if piece.log and to.stat().st_size < piece.row.size:  # rewritten meanwhile: not a log
                return False
        return not settled or self._held_still(choice, staging)

    def hold(self, found: Parts, saved: TreeScan) -> None:
        """Hold files at rest that are rewritten under the same names, and that the store does not have: the
        next save, torn by a kill, would leave neither. What was held before goes only once they are."""
        groups, stored = found.groups, set(saved.rows)
        if any(self._rested.get(key) != rows for key, rows in groups.items()):
            return
        lacking = any(row not in stored for rows in found.rewritten.values() for row in rows.rows)
        is_new = lacking and self._still.can_hold(groups) and self._still.take(groups, self._groups_now)
        if not lacking or self._still.holds(groups):
            is_new |= self._forget_earlier(groups)
        if is_new:
            self._write_note()
            self._still.remove_older()

    def _groups_now(self) -> Mapping[str, TreeScan]:
        return self.parts(scan(self.folder)).groups

    def _forget_earlier(self, groups: Mapping[str, TreeScan]) -> bool:
        """The files of these groups are safe: no earlier version or copy is needed. Whether there was any."""
        forgot = [self._replaced[key].forget() for key in groups if key in self._replaced]
        return self._still.forget(groups) or any(forgot)

    def is_unchanged(self, choice: Choice, staging: Path) -> bool:
        """Whether nobody has written to files that were linked there."""
        linked = (piece for piece in choice.pieces if not piece.copied and piece.key is not None)
        return all(files.is_as(staging / piece.row.name, piece.row) for piece in linked)

    def keep(self, choice: Choice, staging: Path) -> None:
        """After a save: keep its lump, if it goes with other files, and its units. `staging` may be taken."""
        self._verified = {piece.row for piece in choice.pieces if piece.key is not None}
        self._rested.update(choice.rested)
        for piece in choice.pieces:
            if piece.key in self._replaced:
                self._replaced[piece.key].forget_before(piece.row)
        if choice.rested and all(choice.rested.get(key) == rows for key, rows in self._groups.items()):
            self._forget_earlier(choice.rested)
            self._still.remove_older()
        if not choice.aged and not choice.lacks:
            self._kept.forget()
            if choice.rewritten and (choice.library.rows or len({p.key for p in choice.pieces}) > 1):
                self._kept.take(choice.pieces, staging)
        self._write_note()

    def _manifest(self, mark: FileRow) -> Mapping[str, int]:
        """Names and sizes that a mark has for the files of its unit; none if it is older than that."""
        if mark not in self._manifests:
            record = handoff.read(self.folder / mark.name) or {}
            self._manifests[mark] = {str(k): int(v) for k, v in record.get("files", {}).items()}
        return self._manifests[mark]

    def _learn(self, found: Parts) -> None:
        learned = False
        for key, rows in found.groups.items():
            largest = max(row.size for row in rows.rows)
            if self._rest.of(key, rows) >= self._settle + largest / SLOW and self._rested.get(key) != rows:
                self._rested[key], learned = rows, True
        clock, wall = self._clocks.clock(), self._clocks.wall()
        for key, rows in found.rewritten.items():
            if not rows.rows:
                self._replaced[key].forget()
            if not rows.rows or self._rest.is_reached(key, rows):
                self._restless.pop(key, None)
            else:
                learned |= self._replaced[key].look(rows, found.units, wall)
                self._tell_restless(key, rows, found.units, clock)
        learned |= self._copy_still(found, wall)
        if learned:
            self._write_note()
            self._still.remove_older()

    def _copy_still(self, found: Parts, wall: float) -> bool:
        """Copy a folder that does not rest, if it is between two saves. Whether there is news to note."""
        groups = found.groups
        rested = all(self._rested.get(key) == rows for key, rows in groups.items())
        self._is_restless = not rested and self._still.are_possible(groups)
        if not self._is_restless:
            return False
        self._rhythm.look(groups, self._still.is_closed)
        news = not self._at_edge and self._rhythm.is_at_edge() and self._needs_still(found)
        self._at_edge |= news
        if not self._rhythm.is_between_saves(wall):
            return news
        return self._still.take(groups, self._groups_now) or news

    def _needs_still(self, found: Parts) -> bool:
        """Whether a kill would leave nothing complete of a folder that does not rest but a still copy."""
        if not found.lump.rows:
            return not folder_parts.succeeded(found.units, self._changed)
        return self._replaced[LUMP].usable(found.lump, found.units) is None

    def _whole(self, key: str, rows: TreeScan, running: bool) -> TreeScan:
        """Files of a group that are complete: all if it is at rest, else those that were, if untouched."""
        if running and self._rest.is_reached(key, rows):
            return rows
        before = self._without_logs(self._rested.get(key, NOTHING))
        return before if folder_parts.holds(rows, before) else NOTHING

    def _without_logs(self, rows: TreeScan) -> TreeScan:
        return TreeScan(tuple(row for row in rows.rows if row.name not in self._growing))

    def _rewritten_now(
        self, key: str, rows: TreeScan, complete: set[str], running: bool
    ) -> list[Piece] | None:
        """Lump or best, complete; None if it is not, and no version of its only changing file is."""
        whole = self._whole(key, rows, running)
        if whole.rows or (not rows.rows and self._rest.is_emptied(key)):
            return [self._piece(row, key, copied=True) for row in whole.rows]
        version = self._replaced[key].usable(rows, complete)
        if version is None:
            return None
        beside = [self._piece(row, key, copied=True) for row in version.beside.rows]
        return [Piece(version.row, version.path.parent, version.path.name, False, key), *beside]

    def _with_earlier(
        self, pieces: list[Piece], lacking: set[str], still: list[Piece]
    ) -> tuple[list[Piece], list[Piece]]:
        """Complete files with earlier ones where lump or best are not complete; what is from earlier.
        `still`: a copy from between two saves. It counts if it is newer than all that is complete."""
        kept = self._kept.intact()
        kept = still if still and _newest(still) >= _newest(kept) else kept
        wanted, newer = set(lacking), _newest(still) > _newest(pieces)
        if newer or LUMP in lacking:
            wanted |= {piece.key for piece in kept if piece.key not in (None, BEST)}
        if newer and LUMP in wanted:
            pieces = [piece for piece in pieces if piece.key != LUMP]
        names = {piece.row.name for piece in pieces}
        earlier = [piece for piece in kept if piece.key in wanted and piece.row.name not in names]
        return pieces + earlier, earlier

    def _still_pieces(self, found: Parts) -> list[Piece]:
        copy = self._still.usable(found.groups)
        if copy is None:
            return []
        groups = copy.groups.items()
        return [Piece(row, copy.place, row.name, False, key) for key, rows in groups for row in rows.rows]

    def _piece(self, row: FileRow, key: str | None, *, copied: bool = False) -> Piece:
        return Piece(row, self.folder, row.name, copied, key)

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
        file_rows = {row for rows in now.groups.values() for row in rows.rows}
        own = {
            piece.row
            for piece in choice.pieces
            if piece.key is not None and piece.root == self.folder and not piece.done
        }
        return own <= file_rows and all(now.groups.get(key) == rows for key, rows in choice.rested.items())

    def _is_to_verify(self, piece: Piece) -> bool:
        """Whether its bytes are not known to hold still: neither declared, nor linked and read before."""
        verified = not piece.copied and piece.row in self._verified
        return piece.key is not None and not piece.row.link and not verified

    def _tell_restless(self, key: str, rows: TreeScan, units: Mapping[str, TreeScan], clock: float) -> None:
        """Say once that the script writes so often that its files are never complete."""
        since, replaced = self._restless.setdefault(key, clock), self._replaced[key]
        saved = replaced.usable(rows, units) or self._still.usable({key: rows})
        if self._told or saved or clock - since < RESTLESS * self._settle:
            return
        self._told = True
        wall = self._clocks.wall()
        young = sorted(row.name for row in rows.rows if wall - row.mtime_ns / 1e9 < self._settle)
        several, names = len(young) > 1, ", ".join(young[:NAMED]) + " and more" * (len(young) > NAMED)
        verb, they = ("are", "they are never unchanged") if several else ("is", "it is never unchanged")
        advice = (
            "save them in one file, written to a temporary name and then renamed"
            if several
            else "write to a temporary name, then rename"
        )
        self._say(
            f"{names} {verb} rewritten so often that {they} for {self._settle:g} s, and {verb} not saved: "
            f"{advice}; or write each save to a name with its step, like checkpoint-20.pt"
        )

    def _write_note(self) -> None:
        self._noted_growing = set(self._growing)
        self._note(
            {
                "rested": {key: _as_lists(rows.rows) for key, rows in self._rested.items()},
                "rewritten": sorted(self._rewritten),
                "growing": sorted(self._growing),
                "version": self._replaced[LUMP].note(),
                "best": self._replaced[BEST].note(),
                "kept": self._kept.note(),
                "still": self._still.note(),
                "at_edge": self._at_edge,
            }
        )

    def _recall(self, memory: Mapping[str, Any]) -> None:
        rested = memory.get("rested", {})
        self._rested = {str(key): _as_scan(rows) for key, rows in rested.items()}
        self._replaced[LUMP].recall(memory.get("version", {}))
        self._replaced[BEST].recall(memory.get("best", {}))
        self._still.recall(memory.get("still", ()))
        self._kept.recall(memory.get("kept", {}))


def _newest(pieces: Iterable[Piece]) -> float:
    """When the newest file that must be complete was written, those named after the best aside."""
    own = (piece.row.mtime_ns for piece in pieces if piece.key not in (None, BEST))
    return max(own, default=0) / 1e9


def _as_lists(rows: Iterable[FileRow]) -> list[Any]:
    return [row.as_list() for row in rows]


def _as_scan(rows: Iterable[Any]) -> TreeScan:
    return TreeScan(tuple(FileRow.from_list(row) for row in rows))
