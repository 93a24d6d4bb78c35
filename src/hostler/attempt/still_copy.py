"""The still copy of a checkpoint folder whose files never rest: what a kill at that moment would leave.

Nobody had a file of the folder open for writing when the copy began and when it ended, and nothing in it
changed meanwhile: the script itself would find exactly these bytes if it were killed then. Whether that is
one whole save, `save_rhythm.py` says. It counts once the script has begun its next save: one that fails in
the middle of a save closes its file, too.

The kernel knows who has a file open for writing, and refuses a read lease on it. A lease that is granted is
given back at once: a script that opens the file in that instant waits for a moment. A process never asks for
leases on files that it writes itself: a thread that waits for one and keeps Python's lock would wait for us.
So scripts by hand have no still copies. Neither have disks without leases, and folders above `still_max`.
Files at rest that the store does not have yet are held the same way: the next save may be torn by a kill, and
the one before it must not be gone. Above `still_max` they are held by hard links, which cost nothing and
serve where the next save is written beside and renamed.
Copying takes a twentieth of the time; waiting for a busy processor is not counted, or the copies would be old
where several runs share a machine.
"""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from hostler.attempt import folder as files
from hostler.attempt.folder_parts import BEST, LUMP
from hostler.attempt.save_rhythm import slot_of
from hostler.frozen import dataclass
from hostler.records.checkpoint.tree import FileRow, TreeScan

try:
    import fcntl

    LEASES = hasattr(fcntl, "F_SETLEASE")  # Linux
except ImportError:
    LEASES = False

SHARE = 20  # times the seconds that a copy took, until the next one
PAUSE = 0.3  # seconds between two copies, at least
MOST_FILES = 500


@dataclass(frozen=True)
class StillCopy:
    """Files of a checkpoint folder by group, and where their bytes are."""

    groups: Mapping[str, TreeScan]
    place: Path

    @property
    def rows(self) -> list[FileRow]:
        return [row for rows in self.groups.values() for row in rows.rows]

    @property
    def newest(self) -> float:
        """When the save that it holds ended."""
        return max(rows.newest for key, rows in self.groups.items() if key != BEST)

    def is_followed(self, groups: Mapping[str, TreeScan]) -> bool:
        """Whether a file of the next save is among these."""
        slots, own = _slots(self.groups), set(self.rows)
        return any(name in slots and row not in own for name, row in _named(groups))

    def is_intact(self) -> bool:
        return all(files.is_as(self.place / row.name, row) for row in self.rows)


class StillCopies:
    def __init__(
        self,
        folder: Path,
        place: Path,
        most: float,
        clock: Callable[[], float],
        waited: Callable[[], float] | None = None,
    ) -> None:
        """`place`: where they go, beside the folder. `most`: bytes of a folder that is copied. `waited`:
        seconds that this thread has waited for a processor, by default as the kernel has it."""
        self._folder, self._place, self._most, self._clock = folder, place, most, clock
        self._waited = waited or waited_for_processor
        self._possible = LEASES and most > 0
        self._next, self._count = float("-inf"), 0
        self._newest: StillCopy | None = None
        self._followed: StillCopy | None = None

    def usable(self, groups: Mapping[str, TreeScan]) -> StillCopy | None:
        """The newest copy that counts, given the files of the folder as they are now."""
        newest = self._newest if self._newest and self._newest.is_followed(groups) else None
        return next((copy for copy in (newest, self._followed) if copy and copy.is_intact()), None)

    def are_possible(self, groups: Mapping[str, TreeScan]) -> bool:
        rows = [row for group in groups.values() for row in group.rows]
        return self._possible and len(rows) <= MOST_FILES and sum(row.size for row in rows) <= self._most

    def can_hold(self, groups: Mapping[str, TreeScan]) -> bool:
        """Whether files at rest can be held, copied or linked."""
        return self._possible and sum(len(rows.rows) for rows in groups.values()) <= MOST_FILES

    def take(self, groups: Mapping[str, TreeScan], now: Callable[[], Mapping[str, TreeScan]]) -> bool:
        """Copy the folder as it is, if it holds still; `now` looks at it again. Whether there is a new copy.
        Older ones stay on the disk until `remove_older`: a note may name them."""
        begun, waited = self._clock(), self._waited()
        if begun < self._next or self.holds(groups):
            return False
        copy = StillCopy(dict(groups), self._place / str(self._count + 1))
        shutil.rmtree(copy.place, ignore_errors=True)
        try:
            copy.place.mkdir(parents=True)
            whole = self._is_still(copy.rows) and self._copied(copy)
            whole = whole and self._is_still(copy.rows) and now() == copy.groups and copy.is_intact()
        except OSError:  # no room, or a file went
            whole = False
        ended = self._clock()
        took = ended - begun - (self._waited() - waited)
        self._next = ended + max(PAUSE if whole else 0.0, SHARE * took)
        if not whole:
            shutil.rmtree(copy.place, ignore_errors=True)
            return False
        if self._newest and self._newest.is_followed(groups):
            self._followed = self._newest
        self._count, self._newest = self._count + 1, copy
        return True

    def holds(self, groups: Mapping[str, TreeScan]) -> bool:
        """Whether the newest copy is of these files."""
        return self._newest is not None and self._newest.groups == groups

    def forget(self, groups: Mapping[str, TreeScan]) -> bool:
        """These files are safe: no other copy is needed. Whether there were any."""
        before = self._newest, self._followed
        self._newest, self._followed = self._newest if self.holds(groups) else None, None
        return (self._newest, self._followed) != before

    def remove_older(self) -> None:
        """Remove copies that nobody knows any more."""
        kept = {copy.place.name for copy in (self._newest, self._followed) if copy}
        for path in self._place.iterdir() if self._place.is_dir() else ():
            if path.name not in kept:
                shutil.rmtree(path, ignore_errors=True)

    def rows(self) -> list[FileRow]:
        """Files whose bytes are here."""
        return [row for copy in (self._newest, self._followed) if copy for row in copy.rows]

    def note(self) -> list[Any]:
        """The copies, for whoever starts after a kill."""
        return [_noted(copy) for copy in (self._newest, self._followed)]

    def recall(self, note: Sequence[Any]) -> None:
        """Take over the copies that a killed process has noted."""
        if note:
            self._newest, self._followed = (self._recalled(noted) for noted in note)

    def _recalled(self, note: Mapping[str, Any] | None) -> StillCopy | None:
        if not note:
            return None
        groups = {
            str(key): TreeScan(tuple(FileRow.from_list(row) for row in rows))
            for key, rows in note["groups"].items()
        }
        return StillCopy(groups, self._place / str(note["place"]))

    def _copied(self, copy: StillCopy) -> bool:
        """Copy the files, or link those of a folder that is too large."""
        small = sum(row.size for row in copy.rows) <= self._most
        for row in copy.rows:
            path, to = self._folder / row.name, copy.place / row.name
            if small or row.link:
                if not files.copy_file(self._folder, path, to, row):
                    return False
            else:
                to.parent.mkdir(parents=True, exist_ok=True)
                os.link(path, to)
        return True

    def _is_still(self, rows: list[FileRow]) -> bool:
        """Whether nobody has any of these files open for writing, and links lead to files of the folder."""
        folder = self._folder.resolve()
        for row in rows:
            path = self._folder / row.name
            if row.link:
                target = path.resolve()
                if not target.is_relative_to(folder) or not target.exists():
                    return False
            elif not self.is_closed(row):
                return False
        return True

    def is_closed(self, row: FileRow) -> bool:
        """Whether nobody has a file of the folder open for writing."""
        try:
            found = is_closed(self._folder / row.name) if not row.link else True
        except OSError:  # it has gone
            return False
        self._possible &= found is not None
        return bool(found)


def waited_for_processor() -> float:
    """Seconds that this thread could have run, and others did; 0 where the kernel does not say."""
    try:
        with open("/proc/thread-self/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0


def is_closed(path: Path) -> bool | None:
    """Whether nobody has a file open for writing; None where the kernel does not say."""
    if not LEASES:
        return None
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        # Who opens it for writing while we have the lease makes the kernel send us SIGIO, which would end the
        # process. SIGURG is ignored unless somebody wants it.
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except BlockingIOError:
        return False
    except OSError:  # not our file, or a disk without leases
        return None
    finally:
        os.close(file)
    return True


def _named(groups: Mapping[str, TreeScan]) -> list[tuple[str, FileRow]]:
    """Files with their slots, those named after the best aside."""
    return [
        (slot_of(row.name, is_unit=key != LUMP), row)
        for key, rows in groups.items()
        for row in (rows.rows if key != BEST else ())
    ]


def _slots(groups: Mapping[str, TreeScan]) -> set[str]:
    return {name for name, _ in _named(groups)}


def _noted(copy: StillCopy | None) -> dict[str, Any]:
    if copy is None:
        return {}
    rows = {key: [row.as_list() for row in group.rows] for key, group in copy.groups.items()}
    return {"place": copy.place.name, "groups": rows}
