"""Tensors into host memory, as fast as memory is: plain ones by several threads, a few megabytes at a time.

The caller copies, too, and whoever is done takes the next piece: on a busy machine this is never much slower
than one thread, and on a free one as fast as several.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque

from hostler.sdk.checkpoint.safetensors import Plan

PIECE = 4 << 20
THREADS = 4
WORTH = 64 << 20  # less than this is copied by the caller alone

Job = tuple[int, int, int]  # to, from, bytes


def copy(plan: Plan, data: memoryview) -> None:
    """Every tensor to its place. Copies from a GPU are begun here, and done once they are waited for."""
    jobs: deque[Job] = deque()
    base = ctypes.addressof(ctypes.c_char.from_buffer(data)) if plan.size else 0
    for slot, at in plan.slots:
        if slot.address is None:
            slot.copy(data[at : at + slot.size])
            continue
        for begin in range(0, slot.size, PIECE):
            jobs.append((base + at + begin, slot.address + begin, min(PIECE, slot.size - begin)))
    helpers = min(THREADS, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1) - 1
    if plan.size < WORTH:
        helpers = 0
    threads = [threading.Thread(target=_work, args=(jobs,), daemon=True) for _ in range(helpers)]
    for thread in threads:
        thread.start()
    _work(jobs)
    for thread in threads:
        thread.join()


def _work(jobs: deque[Job]) -> None:
    while True:
        try:
            to, source, size = jobs.popleft()
        except IndexError:
            return
        ctypes.memmove(to, source, size)
