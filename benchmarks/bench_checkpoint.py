"""A checkpoint of 1 GB: how long the loop waits against a memory copy, and how long until it is durable
against a plain write and fsync of as many bytes."""

from __future__ import annotations

import ctypes
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from row import Row

from hostler.sdk.checkpoint import host_memory
from hostler.sdk.checkpoint.checkpointer import Checkpointer
from hostler.sdk.checkpoint.policy import SavePolicy

SIZE = 1 << 30
TENSORS = 64
TIMES = 7
REST = 0.5  # seconds in which what is old goes from the disk, of both


def main() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="hostler-bench-", dir=_disk()) as name:
        folder = Path(name)
        training = _Training()
        plain = _Plain(training, folder / "plain")
        checkpointer = Checkpointer(folder / "checkpoints", policy=SavePolicy(keep=1), say=lambda line: None)
        checkpointer.track(training=training)
        waits: list[float] = []
        durable: list[float] = []
        copies: list[float] = []
        writes: list[float] = []
        for n in range(TIMES + 1):  # the first of each makes memory and files: not counted
            copies.append(_timed(plain.copy))
            writes.append(_timed(plain.write))
            begun = time.perf_counter()
            checkpointer.save(n, {})
            waits.append(time.perf_counter() - begun)
            checkpointer.wait()
            durable.append(time.perf_counter() - begun)
            plain.remove()
            time.sleep(REST)
    ours, floor = _median(waits) * 1000, _median(copies) * 1000
    return [
        Row(f"checkpoint of 1 GB ({training.kind}): the loop waits", ours, floor, 0.5, "ms"),
        Row("the same: durable, with checksums", _median(durable), _median(writes), 0.7, "s"),
    ]


class _Training:
    """Something with as many tensors as a small model, of torch where it is installed, else of NumPy."""

    def __init__(self) -> None:
        self.kind, self.tensors = _tensors()

    def state_dict(self) -> dict[str, Any]:
        return dict(self.tensors)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.tensors = state


class _Plain:
    """The least: one copy to memory that is there, one write, one fsync."""

    def __init__(self, training: _Training, path: Path) -> None:
        self._sources = [_address(tensor) for tensor in training.tensors.values()]
        self._block = host_memory.fresh(SIZE)
        self._to = ctypes.addressof(ctypes.c_char.from_buffer(self._block))
        self._path = path

    def copy(self) -> None:
        for n, source in enumerate(self._sources):
            ctypes.memmove(self._to + n * (SIZE // TENSORS), source, SIZE // TENSORS)

    def remove(self) -> None:
        self._path.unlink(missing_ok=True)

    def write(self) -> None:
        handle = os.open(self._path, os.O_WRONLY | os.O_CREAT)
        done = 0
        while done < SIZE:
            done += os.write(handle, self._block[done : done + (64 << 20)])
        os.fsync(handle)
        os.close(handle)


def _tensors() -> tuple[str, dict[str, Any]]:
    count = SIZE // TENSORS // 4
    try:
        import torch
    except ImportError:
        import numpy

        return "NumPy", {f"layer{n}": numpy.ones(count, "f4") for n in range(TENSORS)}
    return "torch", {f"layer{n}": torch.randn(count) for n in range(TENSORS)}


def _address(tensor: Any) -> int:
    return int(tensor.data_ptr() if hasattr(tensor, "data_ptr") else tensor.ctypes.data)


def _disk() -> str | None:
    """A folder in memory would make the write look cheap."""
    return "/var/tmp" if sys.platform == "linux" and os.access("/var/tmp", os.W_OK) else None


def _median(times: list[float]) -> float:
    return statistics.median(times[1:])


def _timed(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
