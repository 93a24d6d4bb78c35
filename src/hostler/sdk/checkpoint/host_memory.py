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


class HostMemory:
    """`take(n)` gives n bytes; the next `take` may give the same ones again."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._block = memoryview(b"")
        self._maker: Make | None = None

    def take(self, size: int, make: Make | None = None) -> memoryview:
        """`make` gives memory of another kind: that which a GPU copies to."""
        with self._lock:
            if len(self._block) < size or make is not self._maker:
                self._block = memoryview(b"")  # the old block goes before the new one comes
                self._block, self._maker = make(size) if make else fresh(int(size * SLACK)), make
            return self._block[:size]

    def warm(self, size: int, make: Make | None = None) -> threading.Thread:
        """Make and touch the block beside the caller; a `take` meanwhile waits for it."""
        thread = threading.Thread(target=self._warm, args=(size, make), name="hostler-memory", daemon=True)
        thread.start()
        return thread

    def _warm(self, size: int, make: Make | None) -> None:
        try:
            block = self.take(size, make)
            if block.nbytes:
                ctypes.memset(ctypes.addressof(ctypes.c_char.from_buffer(block)), 0, block.nbytes)
        except (MemoryError, OSError, ValueError):
            pass  # the save itself will say so


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
