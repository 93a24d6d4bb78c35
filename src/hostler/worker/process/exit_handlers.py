"""Functions that libraries have asked libc to call at the end of this process, read from libc's own list.

Running them all in a fork of a process that has imported torch takes longer than most short scripts:
thousands of destructors touch pages that the fork shares. Nearly all of them free memory. Two kinds do
something that a person could miss: a function that a library registered on purpose (`atexit`; HDF5 closes its
files there), and a static object of a library that the script itself has loaded. Of the second kind, and of
whatever the script has registered, libc's own `exit` takes care (`needs_exit`). Functions that were there
before the fork are called by themselves (`call`), newest first as `exit` would.

A library with code for a GPU registers a function for each piece of it, thousands in all, which takes that
piece off the device. Nothing is on a device while none is open, so these are left out. Such a library is
known by the section of its file that holds the code, not by its name.

The list is glibc's `__exit_funcs`, which `exit` names in its first instructions. It is read through
`/proc/self/mem`: a wrong guess is an error, not a crash. Where it cannot be read, everything is in doubt.
Standard library only: part of a program of its own (`warm_parent.py`).
"""

from __future__ import annotations

import os
import struct

TYPE_CHECKING = False  # as typing's, which takes milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Handler = tuple[int, int, int, int]  # flavour, function as libc keeps it, argument, library's handle

LOAD_LIST = b"\x48\x8d\x35"  # lea rsi, [rip + offset]: exit's second argument, on x86-64
NODE, HANDLER, SLOTS = 16, 32, 32  # bytes before a node's handlers, bytes of one, handlers of a node
ON_EXIT, AT_EXIT, CXA = 2, 3, 4  # flavours of a handler; others are free or being called
MOST = 1 << 20  # handlers: more is a list that was misread
ROTATED = 17  # bits by which libc turns the address of a function, after it has mixed a secret into it
WORD = (1 << 64) - 1
GPU_CODE = b".nv_fatbin"  # the section of a library's file
GPU = "/dev/nvidia"
# OpenSSL only frees memory there, below threads that may still use it.
FREES_ONLY = ("libcrypto", "libssl")


class Mapping:
    """A stretch of this process's memory; what follows a file without a name of its own belongs to it."""

    def __init__(self, low: int, high: int, file: str, runs: bool) -> None:
        self.low, self.high, self.file, self.runs = low, high, file, runs


class KnownHandlers:
    """The list as it was at one moment: what a later look can leave out, and what is to be called."""

    def __init__(
        self,
        place: int,
        head: int,
        count: int,
        files: frozenset[str],
        calls: tuple[tuple[int, int, int], ...],
    ) -> None:
        """`place`: where libc keeps the address of the newest node. `calls`: flavour, address and argument of
        functions registered on purpose, the newest first."""
        self.place, self.head, self.count, self.files, self.calls = place, head, count, files, calls


def look(ctypes: Any) -> KnownHandlers | None:
    """The handlers of this process, or None if they cannot be read. `ctypes` is the module."""
    try:
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            secret = _secret(ctypes, memory.fileno())
            place = _place(ctypes, memory.fileno())
            head = _word(memory.fileno(), place)
            handlers = list(_handlers(memory.fileno(), head))
            count = _word(memory.fileno(), head + 8) if head else 0
        maps = _maps()
        own = [
            handler for handler in handlers if handler[0] != CXA or handler[2:] != (0, 0)
        ]  # without a library: loader's
        calls = [
            (flavour, _checked(_address(function, secret), maps), argument)
            for flavour, function, argument, _ in _on_purpose(own, maps)
        ]
        files = frozenset(mapping.file for mapping in maps)
        return KnownHandlers(place, head, count, files, tuple(calls))
    except (OSError, ValueError, struct.error):
        return None


def needs_exit(before: KnownHandlers | None) -> bool:
    """Whether libc's own `exit` must end this process, a fork of one that looked as `before` says."""
    if before is None:
        return True
    try:
        if any(target.startswith(GPU) for target in _opened()):
            return True
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            head = _word(memory.fileno(), before.place)
            new = list(_handlers(memory.fileno(), head, before))
        maps = _maps() if new else []
        on_purpose = next(_on_purpose(new, maps), None) is not None
        return on_purpose or any(_file(dso, maps) not in before.files for *_, dso in new)
    except (OSError, ValueError, struct.error):
        return True


def call(ctypes: Any, before: KnownHandlers, status: int) -> None:
    """Call the functions that were registered on purpose before the fork, where `exit` is not needed."""
    for flavour, address, argument in before.calls:
        if flavour == CXA:
            ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)(address)(argument, status)
        elif flavour == ON_EXIT:
            ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_void_p)(address)(status, argument)
        else:
            ctypes.CFUNCTYPE(None)(address)()


def _place(ctypes: Any, memory: int) -> int:
    """The place where libc keeps the address of the newest node."""
    entry: int = ctypes.cast(ctypes.CDLL(None).exit, ctypes.c_void_p).value or 0
    code = os.pread(memory, 48, entry)
    at = code.find(LOAD_LIST)
    if os.uname().machine != "x86_64" or at < 0:
        raise ValueError("exit does not look as expected")
    (offset,) = struct.unpack_from("<i", code, at + len(LOAD_LIST))
    return entry + at + len(LOAD_LIST) + 4 + int(offset)


def _secret(ctypes: Any, memory: int) -> int:
    """The word that libc mixes into addresses: found by registering a function that does nothing."""
    library = ctypes.CDLL(None)
    known = ctypes.cast(library.abs, ctypes.c_void_p).value or 0
    if library.__cxa_atexit(ctypes.c_void_p(known), None, None):
        raise ValueError("no function can be registered")
    _, function, argument, dso = next(_handlers(memory, _word(memory, _place(ctypes, memory))))
    if (argument, dso) != (0, 0):
        raise ValueError("the newest handler is another")
    return _address(function, known)


def _address(function: int, secret: int) -> int:
    """Undo what libc does to an address that it keeps; with the address as `secret`, the secret itself."""
    return ((function >> ROTATED | function << 64 - ROTATED) & WORD) ^ secret


def _checked(address: int, maps: list[Mapping]) -> int:
    if not any(mapping.runs and mapping.low <= address < mapping.high for mapping in maps):
        raise ValueError("not the address of a function")
    return address


def _handlers(memory: int, head: int, before: KnownHandlers | None = None) -> Iterator[Handler]:
    """Each handler, the newest first, those of `before` left out."""
    node, seen = head, 0
    while node:
        following, used = struct.unpack("<QQ", os.pread(memory, NODE, node))
        first = before.count if before and node == before.head else 0
        seen += used
        if used > SLOTS or seen > MOST:
            raise ValueError("not a list of handlers")
        body = os.pread(memory, used * HANDLER, node + NODE)
        for n in range(used - 1, first - 1, -1):
            flavour, function, argument, dso = struct.unpack_from("<QQQQ", body, n * HANDLER)
            if flavour > CXA:
                raise ValueError("not a handler")
            if flavour in (ON_EXIT, AT_EXIT, CXA):
                yield flavour, function, argument, dso
        if before and node == before.head:
            return
        node = following


def _on_purpose(handlers: list[Handler], maps: list[Mapping]) -> Iterator[Handler]:
    """A static object's destructor has the object as its argument; a call of `atexit` has none."""
    left_out: dict[str, bool] = {}
    for handler in handlers:
        flavour, _, argument, dso = handler
        if flavour != CXA:
            yield handler
        elif not argument:
            file = _file(dso, maps)
            if file not in left_out:
                left_out[file] = os.path.basename(file).startswith(FREES_ONLY) or _holds_gpu_code(file)
            if not left_out[file]:
                yield handler


def _holds_gpu_code(file: str) -> bool:
    """Whether this library has a section with code for a GPU; False where that cannot be read."""
    try:
        with open(file, "rb", buffering=0) as library:
            header = os.pread(library.fileno(), 64, 0)
            start, size, count, names = struct.unpack_from("<Q10xHHH", header, 40)
            if header[:5] != b"\x7fELF\x02" or size != 64 or not count:
                return False
            at, length = struct.unpack_from("<QQ", os.pread(library.fileno(), 64, start + names * size), 24)
            return GPU_CODE + b"\0" in os.pread(library.fileno(), min(length, 1 << 20), at)
    except (OSError, ValueError, struct.error):
        return False


def _opened() -> Iterator[str]:
    """Files that this process has open."""
    for name in os.listdir("/proc/self/fd"):
        try:
            yield os.readlink(f"/proc/self/fd/{name}")
        except FileNotFoundError:  # the listing's own
            continue


def _word(memory: int, address: int) -> int:
    (value,) = struct.unpack("<Q", os.pread(memory, 8, address))
    return int(value)


def _maps() -> list[Mapping]:
    mappings, last = [], ""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            words = line.split(None, 5)
            low, high = (int(word, 16) for word in words[0].split("-"))
            last = words[5].rstrip("\n") if len(words) > 5 else last
            mappings.append(Mapping(low, high, last, "x" in words[1]))
    return mappings


def _file(address: int, maps: list[Mapping]) -> str:
    return next((mapping.file for mapping in maps if mapping.low <= address < mapping.high), "")
