"""A folder made exactly once on a machine, however many threads and processes want it at once.

A lock beside the folder, which the kernel lets go of when its holder dies, admits one maker. What it
makes appears under its name in one step, whole: the name is the mark that it is done. A maker that
fails or is killed leaves nothing under the name, and the next one tries again. Where a file system
knows no locks, two may make the same thing, and the first to finish wins.

A folder that is there already is taken only if this user or root made it and nobody else can write to
it; one that was moved to its name also only if it holds what its manifest says.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import secrets
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from hostler import private
from hostler.spec.names import slug
from hostler.worker.prepare import manifest

Note = Callable[[str], None]
Make = Callable[[Path], None]

PAUSE = 0.05  # seconds between two tries for the lock
FLUSH = 1.0  # seconds at most that a finished thing waits for the disk
FEW = 200  # files and folders that are written to disk one by one
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL)


def once(
    folder: Path, make: Make, *, what: str, note: Note, patience: float = 1.0, exact: bool = False
) -> Path:
    """The folder, filled by make(temporary folder) and then moved to its name.

    `exact`: nothing is ever added to it, so one that holds more is refused."""

    def publish(temp: Path) -> None:
        manifest.write(folder, temp)
        try:
            temp.rename(folder)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                raise
            shutil.rmtree(temp, ignore_errors=True)

    _made(folder, make, publish, what, note, patience)
    _check(folder)
    manifest.check(folder, exact=exact)
    return folder


def once_in_place(folder: Path, make: Make, *, what: str, note: Note, patience: float = 1.0) -> Path:
    """For what holds its own path and cannot be moved: made where it stays; the name is a link to it.

    Returns the real folder. The part of its name before the first '.' is the name asked for.
    """

    def publish(place: Path) -> None:
        try:
            os.symlink(place.name, folder)
        except FileExistsError:
            shutil.rmtree(place, ignore_errors=True)

    _made(folder, make, publish, what, note, patience)
    _check(folder)
    return folder.parent / os.readlink(folder)


def _check(folder: Path) -> None:
    """MachineError if another user can write to it, or put another in its place."""
    private.check_closed(folder.parent)
    private.check_closed(folder)


def _made(
    folder: Path, make: Make, publish: Callable[[Path], None], what: str, note: Note, patience: float
) -> None:
    if folder.exists():
        return
    private.closed_folder(folder.parent)
    with _turn(folder, what, note, patience) as alone:
        if folder.exists():
            return
        if alone:
            _clear(folder)
        place = folder.with_name(f"{folder.name}.{_host()}.{secrets.token_hex(6)}")
        place.mkdir(0o700)
        try:
            make(place)
            place.chmod(place.stat().st_mode & ~0o022)  # whatever an archive or a tool has made of it
            _flush(place)
            publish(place)
        except BaseException:
            shutil.rmtree(place, ignore_errors=True)
            raise


@contextmanager
def _turn(folder: Path, what: str, note: Note, patience: float) -> Iterator[bool]:
    """Hold the lock, or see the folder appear; False where the file system has no locks."""
    lock = os.open(f"{folder}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    began, told = time.monotonic(), False
    try:
        while not (state := _try_lock(lock)) and not folder.exists():
            if not told and time.monotonic() - began >= patience:
                note(f"waiting for another process here: {what}")
                told = True
            time.sleep(PAUSE)
        yield state == "alone"
    finally:
        os.close(lock)


def _try_lock(lock: int) -> str:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return ""
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return "unlocked"
        raise
    return "alone"


def _clear(folder: Path) -> None:
    """Remove what makers killed on this machine left; their names begin with the folder's and the host's."""
    if folder.is_symlink():
        folder.unlink()  # leads nowhere: its place was removed
    prefix = f"{folder.name}.{_host()}."
    for path in folder.parent.iterdir():
        if not path.name.startswith(prefix):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def _flush(place: Path) -> None:
    """Start writing it to disk, so that a power cut hardly leaves a done name over empty files.

    Bounded: on a disk that is busy with others' data this would otherwise take minutes.
    """
    flushing = threading.Thread(target=_sync, args=(place,), daemon=True)
    flushing.start()
    flushing.join(FLUSH)


def _sync(place: Path) -> None:
    """Few files are written alone: the disk may have much of others to write, for which nobody need wait."""
    paths = list(islice(_paths(place), FEW + 1))
    if len(paths) <= FEW:
        for path in reversed(paths):  # what is in a folder before the folder
            _sync_one(path)
        return
    syncfs = getattr(ctypes.CDLL(None), "syncfs", None)
    if syncfs is None:
        os.sync()
        return
    handle = os.open(place, os.O_RDONLY)
    try:
        syncfs(handle)
    finally:
        os.close(handle)


def _paths(place: Path) -> Iterator[str]:
    for folder, _, names in os.walk(place):
        yield folder
        yield from (os.path.join(folder, name) for name in names)


def _sync_one(path: str) -> None:
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # a link, a socket, or a file that its owner cannot read
        return
    try:
        os.fsync(handle)
    except OSError:  # a pipe
        pass
    finally:
        os.close(handle)


def _host() -> str:
    return slug(socket.gethostname()).replace(".", "-")
