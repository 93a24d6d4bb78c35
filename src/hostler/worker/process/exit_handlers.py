"""Functions that libraries have asked libc to call at the end of this process, read from libc's own list.

Running them in a fork of a process that has imported torch takes longer than most short scripts: thousands
of destructors touch pages that the fork shares. Nearly all of them free memory. Two kinds do something that
a person could miss: a function that a library registered on purpose (`atexit`, HDF5 closes its files there),
and a static object of a library that the script itself has loaded. `needs_exit` finds these.

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

LOAD_LIST = b"\x48\x8d\x35"  # lea rsi, [rip + offset]: exit's second argument, on x86-64
NODE, HANDLER, SLOTS = 16, 32, 32  # bytes before a node's handlers, bytes of one, handlers of a node
ON_EXIT, AT_EXIT, CXA = 2, 3, 4  # flavours of a handler; others are free or being called
MOST = 1 << 20  # handlers: more is a list that was misread
# OpenSSL frees its memory there; the hash functions of the standard library load it.
HARMLESS = ("libc.so", "libc-", "ld-linux", "libcrypto", "libssl")
# Libraries with code for a GPU register a function for each piece of it, thousands in all, which takes that
# piece off the device. Nothing is on a device while no device is open.
FOR_GPUS = (
    *("libcuda", "libcudart", "libcublas", "libcudnn", "libcufft", "libcufile", "libcupti", "libcurand"),
    *("libcusolver", "libcusparse", "libnccl", "libnvJitLink", "libnvrtc", "libnvshmem", "libnvToolsExt"),
    *("libtorch_cuda", "libtorch_nvshmem", "libc10_cuda"),
)
GPU = "/dev/nvidia"


class KnownHandlers:
    """The list as it was at one moment: what a later look can leave out."""

    def __init__(self, head: int, count: int, files: frozenset[str], deliberate: bool) -> None:
        self.head, self.count, self.files, self.deliberate = head, count, files, deliberate


def look(ctypes: Any) -> KnownHandlers | None:
    """The handlers of this process, or None if they cannot be read. `ctypes` is the module."""
    try:
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            head = _head(ctypes, memory.fileno())
            maps = _maps()
            handlers = list(_handlers(memory.fileno(), head))
            count = _word(memory.fileno(), head + 8) if head else 0
        own = [handler for handler in handlers if handler[1:] != (0, 0)]  # without a library: the loader's
        deliberate = any(_is_deliberate(flavour, argument, dso, maps) for flavour, argument, dso in own)
        return KnownHandlers(head, count, frozenset(file for _, _, file in maps), deliberate)
    except (OSError, ValueError, struct.error):
        return None


def needs_exit(ctypes: Any, before: KnownHandlers | None) -> bool:
    """Whether libc's own `exit` must end this process, a fork of one that looked as `before` says."""
    if before is None or before.deliberate:
        return True
    try:
        if any(target.startswith(GPU) for target in _opened()):
            return True
        with open("/proc/self/mem", "rb", buffering=0) as memory:
            head = _head(ctypes, memory.fileno())
            new = list(_handlers(memory.fileno(), head, before))
        maps = _maps() if new else []
        return any(
            _is_deliberate(flavour, argument, dso, maps) or _file(dso, maps) not in before.files
            for flavour, argument, dso in new
        )
    except (OSError, ValueError, struct.error):
        return True


def _head(ctypes: Any, memory: int) -> int:
    """The address of the newest node."""
    entry = ctypes.cast(ctypes.CDLL(None).exit, ctypes.c_void_p).value or 0
    code = os.pread(memory, 48, entry)
    at = code.find(LOAD_LIST)
    if os.uname().machine != "x86_64" or at < 0:
        raise ValueError("exit does not look as expected")
    (offset,) = struct.unpack_from("<i", code, at + len(LOAD_LIST))
    return _word(memory, entry + at + len(LOAD_LIST) + 4 + offset)


def _handlers(memory: int, head: int, before: KnownHandlers | None = None) -> Iterator[tuple[int, int, int]]:
    """Flavour, argument and library's handle of each handler, those of `before` left out."""
    node, seen = head, 0
    while node:
        following, used = struct.unpack("<QQ", os.pread(memory, NODE, node))
        first = before.count if before and node == before.head else 0
        seen += used
        if used > SLOTS or seen > MOST:
            raise ValueError("not a list of handlers")
        body = os.pread(memory, used * HANDLER, node + NODE)
        for n in range(first, used):
            flavour, _, argument, dso = struct.unpack_from("<QQQQ", body, n * HANDLER)
            if flavour > CXA:
                raise ValueError("not a handler")
            if flavour in (ON_EXIT, AT_EXIT, CXA):
                yield flavour, argument, dso
        if before and node == before.head:
            return
        node = following


def _is_deliberate(flavour: int, argument: int, dso: int, maps: list[tuple[int, int, str]]) -> bool:
    """A static object's destructor has the object as its argument; a call of `atexit` has none."""
    if flavour != CXA:
        return True
    return not argument and not os.path.basename(_file(dso, maps)).startswith((*HARMLESS, *FOR_GPUS))


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


def _maps() -> list[tuple[int, int, str]]:
    """From, to and file of each mapping; what follows a file without a name of its own belongs to it."""
    found, last = [], ""
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as lines:
        for line in lines:
            words = line.split(None, 5)
            low, high = (int(word, 16) for word in words[0].split("-"))
            last = words[5].rstrip("\n") if len(words) > 5 else last
            found.append((low, high, last))
    return found


def _file(address: int, maps: list[tuple[int, int, str]]) -> str:
    return next((file for low, high, file in maps if low <= address < high), "")
