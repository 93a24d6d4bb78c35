"""Folders of runs that are over, used again by later runs of the same code on this machine.

To make a run's folders and its copy of the code, and to take them apart, costs more than most short runs. A
folder is kept if nothing of its run is left in it: no process lives, its own folders are empty, and its copy
is the code's in names, bytes, modes, times and links. Its output is emptied at once. A kept folder lies among
those of its session and goes with them; the name of another run it gets when that takes it.
"""

from __future__ import annotations

import os
import stat
import threading
from dataclasses import dataclass, field
from pathlib import Path

from hostler.attempt.working_files import Look
from hostler.frozen import dataclass as frozen
from hostler.records.run.handoff import Handoff
from hostler.spec.names import WORK

MOST = 32  # folders
LARGEST = 1 << 20  # bytes of a code whose copies are compared with it; a larger one is copied for each run
FILES = 500
CODES = 4  # of which all bytes are remembered

OWN = ("checkpoint", "output", "data")  # folders of a run that are empty if it left nothing
TOLD = (  # by a process to its worker, which has read them
    "joined.json",
    "chosen.json",
    "best.json",
    "early.json",
    "finished.json",
    "left.json",
    "atomic.json",
    "metrics.bin",
    "process.json",
    "exit.json",
)
PRIVATE = 0o600  # mode of what a process prints to


@frozen(frozen=True)
class CodeEntry:
    """A file, folder or link of a code, as each copy of it is."""

    name: str  # from the code's folder on; '' for that itself
    mode: int
    time: int  # of its last change; 0 for a link
    content: bytes | str | frozenset[str]  # of a file; target of a link; names in a folder


@frozen(frozen=True)
class KeptFolder:
    """A folder that may be taken, and the code that its working folder is a copy of."""

    of: object  # all that a run's code depends on
    code: Path
    folder: Path
    files: Look


@dataclass
class ReusedFolders:
    """All methods may be called from several threads."""

    _lock: threading.Lock = field(default_factory=threading.Lock)
    _kept: list[KeptFolder] = field(default_factory=list)
    _known: dict[Path, tuple[CodeEntry, ...]] = field(
        default_factory=dict
    )  # of codes used here; () too large

    def take(self, of: object, place: Path) -> KeptFolder | None:
        """A folder whose copy is of this code, by this name now; None if there is none."""
        with self._lock:
            found = next((kept for kept in self._kept if kept.of == of), None)
            if found is None:
                return None
            self._kept.remove(found)
        try:
            os.rename(found.folder, place)  # noqa: PTH104
        except OSError:  # it goes with its session's folder
            return None
        return found

    def keep(self, of: object, code: Path, run: Handoff) -> bool:
        """Keep the folder of a run that is over and has no process left; False if it is not as it was."""
        try:
            entries = self._entries(code) if len(self._kept) < MOST else ()
            if not entries or not _is_cleared(run.folder) or not _is_copy(str(run.work), entries):
                return False
            os.truncate(run.log, 0)
        except OSError:
            return False
        with self._lock:
            self._kept.append(KeptFolder(of, code, run.folder, _look(entries)))
        return True

    def _entries(self, code: Path) -> tuple[CodeEntry, ...]:
        with self._lock:
            known = self._known.get(code)
        if known is None:
            known = _entries(code)
            with self._lock:
                self._known = {code: known, **dict(list(self._known.items())[: CODES - 1])}
        return known


def _is_cleared(folder: Path) -> bool:
    """Whether a run's folder has nothing in it but what each has; what its process told is removed."""
    shown: dict[str, os.stat_result] = {}
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name in TOLD and entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)
            else:
                shown[entry.name] = entry.stat(follow_symlinks=False)
    if shown.keys() != {*OWN, WORK, "params.json", "output.log"}:
        return False
    mode = os.lstat(folder).st_mode  # as a folder is made here
    if any(shown[name].st_mode != mode or os.listdir(folder / name) for name in OWN):
        return False
    log, params = shown["output.log"], shown["params.json"]
    plain = all(stat.S_ISREG(file.st_mode) and file.st_nlink == 1 for file in (log, params))
    return plain and stat.S_IMODE(log.st_mode) == PRIVATE and bool(params.st_mode & stat.S_IWUSR)


def _is_copy(work: str, entries: tuple[CodeEntry, ...]) -> bool:
    """Whether a working folder is as it was made. A file with a second name may be changed from there."""
    user = os.geteuid()
    for entry in entries:
        path = f"{work}/{entry.name}" if entry.name else work
        info = os.lstat(path)
        if info.st_mode != entry.mode or info.st_uid != user:
            return False
        if isinstance(entry.content, str):
            if os.readlink(path) != entry.content:
                return False
        elif info.st_mtime_ns != entry.time:
            return False
        elif isinstance(entry.content, bytes):
            if info.st_nlink != 1 or info.st_size != len(entry.content) or _bytes(path) != entry.content:
                return False
        elif entry.content != frozenset(os.listdir(path)):
            return False
    return True


def _entries(code: Path) -> tuple[CodeEntry, ...]:
    """All of a code, its own folder first; () if it is too large to be compared."""
    found, pending, size = list[CodeEntry](), [""], 0
    while pending:
        name = pending.pop()
        path = f"{code}/{name}" if name else str(code)
        info = os.lstat(path)
        content: bytes | str | frozenset[str]
        if stat.S_ISLNK(info.st_mode):
            content, time = os.readlink(path), 0
        elif stat.S_ISDIR(info.st_mode):
            content, time = frozenset(os.listdir(path)), info.st_mtime_ns
            pending += [f"{name}/{each}" if name else each for each in content]
        elif not stat.S_ISREG(info.st_mode):
            return ()
        else:
            size += info.st_size
            if size > LARGEST:
                return ()
            content, time = _bytes(path), info.st_mtime_ns
        found.append(CodeEntry(name, info.st_mode, time, content))
        if len(found) > FILES:
            return ()
    return tuple(found)


def _look(entries: tuple[CodeEntry, ...]) -> Look:
    """The look at a copy, as `copy_tree` gives it."""
    found: Look = {}
    for entry in entries:
        if isinstance(entry.content, bytes):
            found[entry.name] = len(entry.content), entry.time
        elif isinstance(entry.content, str):
            found[entry.name] = entry.content
    return found


def _bytes(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:
        return file.read()
