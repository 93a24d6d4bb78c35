"""The rhythm in which a script saves, learned from looks at its folder: is it between two saves. Pure.

A script that saves more often than its files come to rest leaves only moments between two saves. They show
in the times of its files. What one save writes are slots: a name, or the names of one file under counters
(`epoch=3.ckpt`, `epoch=4.ckpt`), or those of two that are written by turns (`a.pt`, `b.pt`). A slot that was
written in the last saves is written in each. So all of them must be there, written closely together compared
with the time between two saves, and left alone since for longer than that. Until a slot was seen in three
versions nobody knows what belongs to a save. A file that another moved away (`ckpt.prev.pt`), and one that is
there only while it is written, are no slots.

Files whose save takes a good part of the time until the next are never between two saves: one could not tell
the end of a save from its middle. Where it takes about that part, the machine's load decides from save to
save: the rhythm is at its edge, and nobody can say whether a save would be caught before a kill.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import PurePosixPath

from hostler.attempt import folder_parts
from hostler.attempt.folder_parts import BEST, LUMP
from hostler.records.checkpoint.tree import FileRow, TreeScan

VERSIONS = 3  # of a file, that show that it is saved again and again
QUIET = 0.05  # seconds: a later write has another mtime
CLOSE = 0.1  # of the time between two saves: what is written within is one save
ALONE = 4  # times as long as that, in which nothing was written since
MOST_SLOTS = 1000
HELD_UP = 0.02  # seconds that a busy machine may keep a script waiting between two writes
MARGIN = 0.025  # seconds between two saves that a copy needs, beyond those that are QUIET
ENOUGH = 5  # saves whose times are enough to speak of the script
EVEN = 1 / 3  # the shortest time between two saves by turns, in the longest
_TURN = re.compile(r"(?<![a-z0-9])(a|b|even|odd|ping|pong)(?![a-z0-9])", re.IGNORECASE)


@dataclass
class Slot:
    """Looks at one file of each save."""

    since: int  # the look that saw it first
    is_part: bool  # its number may be that of a part: it cannot tell one save from the next
    seen: int = 0  # looks that saw it
    now: tuple[FileRow, ...] = ()
    known: set[FileRow] = field(default_factory=set)
    written: deque[FileRow] = field(default_factory=lambda: deque(maxlen=8))

    def see(self, rows: Iterable[FileRow], is_closed: Callable[[FileRow], bool] | None) -> None:
        """`is_closed`: nobody is writing it; None for files that were there before."""
        self.now = tuple(sorted(rows, key=lambda row: row.mtime_ns))
        new = [row for row in self.now if row not in self.known]
        if is_closed:
            new = [row for row in new if is_closed(row)]
            self.written.extend(new)
        self.known = {*(self.known & set(self.now)), *new, *self.written}
        self.seen += bool(self.now)

    @property
    def times(self) -> list[float]:
        """When it was written, as far as that was seen."""
        return sorted(row.mtime_ns / 1e9 for row in self.written)

    @property
    def gaps(self) -> list[float]:
        return [later - earlier for earlier, later in pairwise(self.times)]

    @property
    def is_whole(self) -> bool:
        """Whether its newest file is written, and not much smaller than those before it."""
        newest = self.now[-1] if self.now else None
        return newest in self.known and 2 * newest.size >= max(row.size for row in self.known)

    @property
    def is_one_file(self) -> bool:
        """Whether each save writes one file of it; two that are written by turns take even turns."""
        units = [folder_parts.unit_of(row.name) for row in self.now]
        if any(units):
            return len(set(units)) == len(units)
        names, gaps = [row.name for row in self.written], self.gaps
        if len(set(names)) == 1:
            return True
        by_turns = len(self.written) > VERSIONS and all(a != b for a, b in pairwise(names))
        return by_turns and min(gaps) >= EVEN * max(gaps)


class SaveRhythm:
    def __init__(self, settle: float) -> None:
        """`settle`: seconds after which files are at rest; slower saves need no rhythm."""
        self._settle = settle
        self._slots: dict[str, Slot] = {}
        self._looks = 0
        self._leader: Slot | None = None  # of the slots that a save writes, the best known
        self._saved: list[Slot] = []  # all of them
        self._took: deque[float] = deque(maxlen=8)  # seconds between their times, at the last looks

    def look(self, groups: Mapping[str, TreeScan], is_closed: Callable[[FileRow], bool] | None) -> None:
        """See the files of units and lump; those named after the best are written at moments of their own.
        `is_closed`: nobody is writing this one; None at the first look, when all were there before."""
        self._looks += 1
        rowses: dict[str, list[FileRow]] = {}
        parts: dict[str, bool] = {}
        for key, rows in groups.items():
            for row in rows.rows if key != BEST else ():
                name = slot_of(row.name, is_unit=key != LUMP)
                rowses.setdefault(name, []).append(row)
                parts[name] = key != LUMP and folder_parts.may_be_part(key)
        for name in rowses:
            self._slots.setdefault(name, Slot(self._looks, parts[name]))
        for name, slot in self._slots.items():
            slot.see(rowses.get(name, ()), is_closed)
        if len(self._slots) > MOST_SLOTS:  # names that never come again
            self._slots = {name: slot for name, slot in self._slots.items() if slot.now}
        self._find_save()

    def is_between_saves(self, wall: float) -> bool:
        """Whether the folder, as it was at the last look, holds one whole save."""
        leader, saved = self._leader, self._saved
        if leader is None or max(leader.gaps[1 - VERSIONS :]) > self._settle:
            return False
        passing = any(slot.now for slot in self._slots.values() if not self._lasts(slot))
        if not saved or passing or not all(slot.is_whole and slot.is_one_file for slot in saved):
            return False
        took, quiet = _spread(saved), wall - max(map(_newest, saved))
        gap = min(filter(None, leader.gaps), default=0.0)
        return quiet >= max(ALONE * took, QUIET) and took <= CLOSE * gap

    def is_at_edge(self) -> bool:
        """Whether the machine's load decides which saves can be told from their middle."""
        leader = self._leader
        gaps = sorted(filter(None, leader.gaps)) if leader else []
        if len(gaps) < ENOUGH - 1 or gaps[-1] > self._settle:
            return False
        gap, took = (values[len(values) // 4] for values in (gaps, sorted(self._took)))
        if len(self._saved) < 2:
            return gap < QUIET + MARGIN
        return gap < QUIET + MARGIN or abs(CLOSE * gap - took) < HELD_UP

    def _find_save(self) -> None:
        """Learn which slots a save writes, by the one that was written most often."""
        written = {name: slot for name, slot in self._slots.items() if self._lasts(slot) and slot.written}
        active = [slot for name, slot in written.items() if not self._is_moved(name, slot, written)]
        leader = max(
            (slot for slot in active if not slot.is_part),
            key=lambda slot: (len(slot.written), slot.times[-1]),
            default=None,
        )
        self._leader, self._saved = None, []
        if leader is not None and len(leader.written) >= VERSIONS:
            self._leader = leader
            self._saved = [slot for slot in active if slot.times[-1] > leader.times[-VERSIONS]]
            self._took.append(_spread(self._saved))

    def _lasts(self, slot: Slot) -> bool:
        """Whether it is there most of the time."""
        return 2 * slot.seen > self._looks - slot.since

    def _is_moved(self, name: str, slot: Slot, written: Mapping[str, Slot]) -> bool:
        """Whether its newest file was seen under another name before."""
        if not slot.now:
            return False
        newest = slot.now[-1]
        return any(
            (row.size, row.mtime_ns) == (newest.size, newest.mtime_ns) and row not in other.now
            for key, other in written.items()
            for row in (other.written if key != name else ())
        )


def _newest(slot: Slot) -> float:
    """When its newest file was written."""
    return slot.now[-1].mtime_ns / 1e9


def _spread(slots: Iterable[Slot]) -> float:
    """Seconds from the oldest to the newest of these."""
    times = [_newest(slot) for slot in slots if slot.now]
    return max(times) - min(times) if times else 0.0


def slot_of(name: str, *, is_unit: bool) -> str:
    """The slot that a file is of: its name without counters and values, or without whose turn it is."""
    if not is_unit:
        return _TURN.sub("~", name)
    parts = list(PurePosixPath(name).parts)
    for n, part in enumerate(parts):
        if folder_parts.counters(part):
            parts[n] = folder_parts.without_counters(part)
            break
    return "/".join(parts)
