"""Host memory for checkpoints: one block, kept from save to save, touched before it is needed.

The first write to fresh memory costs many times a copy; so the block is made and touched by a thread of its
own where its size is known beforehand.
"""

from __future__ import annotations

import ctypes
import mmap
import threading
from collections.abc import Callable

Make = Callable[[int], memoryview]

SLACK = 1.05  # optimisers and histories grow a little
SPARE = 1 << 16  # bytes, however small the state


class HostMemory:
    """`take(n)` gives n bytes; the next `take` may give the same ones again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._block = memoryview(b"")
        self._maker: Make | None = None

    def take(self, size: int, make: Make | None = None) -> memoryview:
        """`make` gives memory of another kind: that which a GPU copies to."""
        with self._lock:
            self._renew(size, make)
            return self._block[:size]

    def warm(self, size: int, make: Make | None = None) -> threading.Thread:
        """Make and touch the block beside the caller; a `take` meanwhile waits for it."""
        thread = threading.Thread(target=self._warm, args=(size, make), name="hostler-memory", daemon=True)
        thread.start()
        return thread

    def _warm(self, size: int, make: Make | None) -> None:
        try:
            with self._lock:  # until it is touched: a state that was copied here meanwhile would be zeros
                if self._renew(size, make):
                    block = self._block
                    ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(block)), 0, block.nbytes)
        except (MemoryError, OSError, ValueError):
            pass  # the save itself will say so

    def _renew(self, size: int, make: Make | None) -> bool:
        """Make a block that is large enough, if this one is not; whether it is new."""
        if len(self._block) >= size and make is self._maker:
            return False
        self._block = memoryview(b"")  # the old block goes before the new one comes
        self._block, self._maker = (make or fresh)(int(size * SLACK) + SPARE), make
        return True


def fresh(size: int) -> memoryview:
    """Page-aligned memory that nobody has touched."""
    if size == 0:
        return memoryview(b"")
    block = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for name in ("MADV_HUGEPAGE", "MADV_DONTFORK"):  # a fork would make every page a copy at its next write
        advice = getattr(mmap, name, None)
        try:
            if advice is not None:
                block.madvise(advice)
        except OSError:
            pass
    return memoryview(block)
