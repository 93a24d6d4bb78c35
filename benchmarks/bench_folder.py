"""A create in the folder store against the system calls that no durable create can do without."""

from __future__ import annotations

import os
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from row import Row

from hostler.store.folder import FolderStore

TIMES = 200
DATA = b"x" * 1000


def main() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as name:
        folder = Path(name)
        store = FolderStore(folder)
        store.put("keys/first", DATA)
        ours: list[float] = []
        floor: list[float] = []
        for n in range(TIMES):  # in turns, so that a slow moment of the disk meets both
            ours.append(_timed(lambda n=n: store.put(f"keys/{n}", secrets.token_bytes(1000), if_absent=True)))
            floor.append(_timed(lambda n=n: _raw(folder / "keys", f"raw-{n}")))
    median = statistics.median
    return [
        Row("folder store: create one object, durable", median(ours) * 1e6, median(floor) * 1e6, 1.37, "us")
    ]


def _raw(folder: Path, name: str) -> None:
    temporary = str(folder / f".tmp-{name}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    os.write(handle, DATA)
    os.fsync(handle)
    os.close(handle)
    os.link(temporary, str(folder / name))
    os.unlink(temporary)
    handle = os.open(str(folder), os.O_RDONLY)
    os.fsync(handle)
    os.close(handle)


def _timed(call: Callable[[], object]) -> float:
    begun = time.perf_counter()
    call()
    return time.perf_counter() - begun
