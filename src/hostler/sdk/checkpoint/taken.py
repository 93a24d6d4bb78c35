"""A training's state at one moment, copied to host memory: the only part the loop waits for.

Of a GPU it waits for the order alone: what the device does next comes after a copy on the device itself.
"""

from __future__ import annotations

import ctypes
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import field
from typing import Any

from hostler.frozen import dataclass
from hostler.sdk.checkpoint import rng, torch_state
from hostler.sdk.checkpoint.capture import Capture, Captured
from hostler.sdk.checkpoint.host_memory import HostMemory, Make
from hostler.sdk.checkpoint.safetensors import TensorLayout
from hostler.sdk.checkpoint.tracked import TrackedObject


@dataclass(frozen=True)
class StateCopy:
    """`done` waits until all bytes are in `data`: a GPU copies beside the loop."""

    captured: Captured
    data: memoryview = field(repr=False)
    done: Callable[[], None] = field(repr=False, default=lambda: None)


def take(memory: HostMemory, objects: Mapping[str, TrackedObject], state: Mapping[str, Any]) -> StateCopy:
    """Everything as it is now. Whatever a user's `state_dict` raises, this raises."""
    capture = Capture()
    capture.add("rng", rng.snapshot(), under=("rng",))
    capture.add("state", state, under=("run",))
    capture.add("objects", {name: tracked_object.state() for name, tracked_object in objects.items()})
    captured = capture.close()
    data = memory.take(captured.plan.size, _kind(captured))
    return StateCopy(captured, data, copy(captured.plan, data))


def prepare(memory: HostMemory, objects: Mapping[str, TrackedObject]) -> None:
    """Have memory ready for what `take` will need, beside the loop."""
    capture = Capture()
    capture.add("rng", rng.snapshot(), under=("rng",))
    capture.add("objects", {name: tracked_object.state() for name, tracked_object in objects.items()})
    captured = capture.close()
    memory.warm(captured.plan.size, _kind(captured))


def _kind(captured: Captured) -> Make | None:
    return torch_state.pinned if captured.cuda else None


# Tensors into host memory, as fast as memory is: plain ones by several threads, a few megabytes at a time.
#
# The caller copies, too, and whoever is done takes the next piece: on a busy machine this is never much
# slower than one thread, and on a free one as fast as several.


PIECE = 4 << 20
THREADS = 4
WORTH = 64 << 20  # less than this is copied by the caller alone

Job = tuple[int, int, int]  # to, from, bytes


def copy(plan: TensorLayout, data: memoryview) -> Callable[[], None]:
    """Every tensor to its place. Copies from a GPU are begun here, and done once the returned function is."""
    jobs: deque[Job] = deque()
    placed = [(slot.on_device, at) for slot, at in plan.slots if slot.on_device is not None]
    wait = torch_state.begin(placed, data) if placed else lambda: None
    base = ctypes.addressof(ctypes.c_char.from_buffer(data)) if plan.size else 0
    for slot, at in plan.slots:
        if slot.on_device is not None:
            continue
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
    return wait


def _work(jobs: deque[Job]) -> None:
    while True:
        try:
            to, source, size = jobs.popleft()
        except IndexError:
            return
        ctypes.memmove(to, source, size)
