"""Files below one folder: opened, made and removed without ever following a link below it.

The folder itself may be a link or be reached through some. A link in the way is ELOOP, with the link's name
below the folder as the error's file name. Opening never waits: a pipe is opened like a file, and callers look
at the kind (`is_file`). Linux opens a name of many parts in one call; elsewhere each part is opened from the
one before it.
"""

from __future__ import annotations

import errno
import os
import stat
import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
FOLDER = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_DIRECTORY
CREATE = os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_CREAT | os.O_EXCL
_STEP = FOLDER | getattr(os, "O_PATH", 0)  # of a folder on the way: it need not be readable

_OPENAT2 = 437  # its number on every processor that Linux and Python share
_NO_SYMLINKS = 0x04
_HERE = -100  # AT_FDCWD
_SIZE = 24  # of struct open_how: flags, mode, resolve

_ANOTHER_WAY = {
    errno.ELOOP,  # the link may be on the way to the root
    errno.EAGAIN,  # another program holds a lease on the file, and gives it back soon
    errno.ENOSYS,
}

_PATH = 4096 if sys.platform == "linux" else 1024  # PATH_MAX: bytes of a path, and a zero

Call = Callable[[int, bytes, int], int]


class Root:
    """A folder by its path, which is looked up anew at every call: it may be made or moved meanwhile."""

    def __init__(self, path: str) -> None:
        self.path = path.rstrip("/") + "/"
        self._bytes = os.fsencode(self.path)
        self._call: Call | None = None
        self._is_tried = False  # whether the system was asked for the call

    def attempt(self, name: str, flags: int = READ) -> int:
        """The same as `open`, by one call and without an exception, as absence is a common answer: minus the
        error's number if it failed, minus ENOSYS where the kernel lacks the call."""
        if not self._is_tried:
            try:
                os.lstat(self.path)
            except FileNotFoundError:  # a store that nobody has written to
                return -errno.ENOENT
            except OSError:
                pass  # the call itself says so
            is_direct = os.path.realpath(self.path) == os.path.abspath(self.path)
            self._call, self._is_tried = _openat2() if is_direct else None, True
        if self._call is None:
            return -errno.ENOSYS
        return self._call(_HERE, self._bytes + name.encode(), flags)

    def open(self, name: str, flags: int = READ) -> int:
        """Descriptor of what has this name ('' is the folder itself), to read from."""
        handle = self.attempt(name, flags)
        if handle >= 0:
            return handle
        if -handle not in _ANOTHER_WAY:
            raise OSError(-handle, os.strerror(-handle))
        with self.descriptor() as root:
            return open_below(root, name, flags)

    def folder(self, name: str) -> int:
        return self.open(name, FOLDER)

    @contextmanager
    def descriptor(self) -> Iterator[int]:
        """The root, open for as long as the block takes."""
        root = os.open(self.path, _STEP & ~os.O_NOFOLLOW)
        try:
            yield root
        finally:
            os.close(root)


def open_below(root: int, name: str, flags: int = READ) -> int:
    """Descriptor of what has this name below the folder."""
    if (call := _openat2()) is not None:
        handle = call(root, os.fsencode(name) or b".", flags)
        if handle >= 0:
            return handle
        if -handle not in _ANOTHER_WAY:
            raise OSError(-handle, os.strerror(-handle), name)
    folder, _, leaf = name.rpartition("/")
    with _folder_below(root, folder) as parent:
        try:
            return os.open(leaf or ".", flags, dir_fd=parent)
        except BlockingIOError:
            return os.open(leaf, flags & ~os.O_NONBLOCK, dir_fd=parent)
        except OSError as error:
            raise _reason(error, parent, leaf, name) from None


def make_below(root: int, name: str, made: Callable[[int], None] = lambda parent: None) -> int:
    """Descriptor of the folder of this name, made with those above it; `made` is given the parent of each new
    one."""
    folder = os.dup(root)
    done = ""
    try:
        for part in name.split("/") if name else ():
            done = f"{done}/{part}" if done else part
            try:
                os.mkdir(part, dir_fd=folder)
                made(folder)
            except FileExistsError:
                pass
            try:
                inner = os.open(part, FOLDER, dir_fd=folder)
            except OSError as error:
                raise _reason(error, folder, part, done) from None
            os.close(folder)
            folder = inner
    except BaseException:
        os.close(folder)
        raise
    return folder


@contextmanager
def parent_of(root: int, name: str, *, make: bool = False) -> Iterator[tuple[int, str]]:
    """(descriptor, last part) of the folder that a name is in."""
    folder, _, leaf = name.rpartition("/")
    parent = make_below(root, folder) if make else open_below(root, folder, FOLDER)
    try:
        yield parent, leaf
    finally:
        os.close(parent)


def create_below(root: int, name: str) -> int:
    """Descriptor of a new file, to write to; FileExistsError if anything has its name."""
    with parent_of(root, name, make=True) as (parent, leaf):
        return os.open(leaf, CREATE, 0o666, dir_fd=parent)


def link_below(root: int, name: str, target: str) -> None:
    """A symbolic link; FileExistsError if anything has its name."""
    with parent_of(root, name, make=True) as (parent, leaf):
        os.symlink(target, leaf, dir_fd=parent)


def remove_below(root: int, name: str) -> None:
    """Remove a file or a link, if it is there."""
    try:
        with parent_of(root, name) as (parent, leaf):
            os.unlink(leaf, dir_fd=parent)
    except (FileNotFoundError, NotADirectoryError):
        pass


def leads_inside(folder: str, name: str) -> bool:
    """Whether the end of a link below the folder, wherever other links take it, is below the folder too."""
    root = os.path.realpath(folder)
    path = os.path.join(root, name)
    if len(os.fsencode(path)) >= _PATH:  # too long to be looked at: realpath takes it for a file
        return False
    end = os.path.realpath(path)
    return end == root or end.startswith(root.rstrip("/") + "/")


def is_file(facts: os.stat_result) -> bool:
    return stat.S_ISREG(facts.st_mode)


@contextmanager
def _folder_below(root: int, name: str) -> Iterator[int]:
    """The folder of this name, to open something in."""
    folder, done = root, ""
    try:
        for part in name.split("/") if name else ():
            done = f"{done}/{part}" if done else part
            try:
                inner = os.open(part, _STEP, dir_fd=folder)
            except OSError as error:
                raise _reason(error, folder, part, done) from None
            if folder != root:
                os.close(folder)
            folder = inner
        yield folder
    finally:
        if folder != root:
            os.close(folder)


def _reason(error: OSError, folder: int, part: str, name: str) -> OSError:
    """The error, with the name below the root; ELOOP for a link, which ENOTDIR may stand for."""
    code = error.errno or 0
    if code in (errno.ENOTDIR, errno.EMLINK):  # EMLINK: FreeBSD's word for a link
        try:
            if stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode):
                code = errno.ELOOP
        except OSError:
            pass
    return OSError(code, os.strerror(code), name)


@cache
def _openat2() -> Call | None:
    """Opens a path in which no part is a link, or answers with minus the error's number; None where the
    system has no such call."""
    if sys.platform != "linux":
        return None
    try:
        import ctypes
    except ImportError:  # a Python without it
        return None
    syscall = ctypes.CDLL(None, use_errno=True).syscall
    syscall.restype = ctypes.c_long
    number, size, get_errno = ctypes.c_long(_OPENAT2), ctypes.c_size_t(_SIZE), ctypes.get_errno
    hows: dict[int, Any] = {}

    def call(folder: int, path: bytes, flags: int) -> int:
        how = hows.get(flags)
        if how is None:  # with O_NOFOLLOW a link at the end would be ENOTDIR where a folder is wanted
            how = ctypes.c_char_p(struct.pack("QQQ", flags & ~os.O_NOFOLLOW, 0, _NO_SYMLINKS))
            hows[flags] = how
        handle: int = syscall(number, folder, path, how, size)
        while handle < 0:
            if (code := get_errno()) != errno.EINTR:
                return -code
            handle = syscall(number, folder, path, how, size)
        return handle

    handle = call(_HERE, b"/", _STEP)
    if handle < 0:  # an old kernel, or a sandbox that knows no such call
        return None
    os.close(handle)
    return call
