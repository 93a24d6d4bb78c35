"""One `run.log` with five metrics against packing the same bytes into a mapped file; and none may be lost."""

from __future__ import annotations

import json
import mmap
import os
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from row import Row

from hostler.records.points import survey

POINTS = 20_000
ROUNDS = 7
BOUND = 5.7  # 3 us where the floor is 0.53

SCRIPT = """
import json, os, signal, sys, time
import hostler
run = hostler.start()
took = []
for part in range({rounds}):
    begun = time.perf_counter()
    for n in range({each}):
        run.log(step=n, loss=0.1, accuracy=0.2, lr=0.3, norm=0.4, speed=0.5)
    took.append((time.perf_counter() - begun) / {each})
print(json.dumps(took), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def main() -> list[Row]:
    each = POINTS // ROUNDS + 1
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as name:
        folder = Path(name)
        took = _ours(folder, each)
        floor = _floor(folder / "floor", each)
        found = survey(folder / "metrics.bin").points
    return [
        Row("run.log, five metrics", min(took) * 1e6, floor * 1e6, BOUND, "us"),
        Row(f"points after SIGKILL, of {each * ROUNDS}", each * ROUNDS / max(found, 1), 1, 1, "of each"),
    ]


def _ours(folder: Path, each: int) -> list[float]:
    """In a process of its own, as a worker would start it, which is then killed."""
    (folder / "checkpoint").mkdir()
    (folder / "output").mkdir()
    environment = {**os.environ, "HOSTLER_DIR": str(folder), "HOSTLER_RUN": "bench"}
    command = [sys.executable, "-c", SCRIPT.format(rounds=ROUNDS, each=each)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return [float(value) for value in json.loads(done.stdout)]


def _floor(path: Path, each: int) -> float:
    """Seconds for a function that takes the same words and packs their values and the time, and no more."""
    layout = struct.Struct("<IBHdq5d")
    size = layout.size * each
    with open(path, "w+b") as file:
        file.truncate(size)
        with mmap.mmap(file.fileno(), size) as room:
            return min(_pass(layout, room, each) for _ in range(ROUNDS))


def _pass(layout: struct.Struct, room: mmap.mmap, each: int) -> float:
    pack, width, clock = layout.pack_into, layout.size, time.time
    at = 0

    def log(step: int, **metrics: float) -> None:
        nonlocal at
        pack(room, at, width, 2, 0, clock(), step, *metrics.values())
        at += width

    begun = time.perf_counter()
    for n in range(each):
        log(step=n, loss=0.1, accuracy=0.2, lr=0.3, norm=0.4, speed=0.5)
    return (time.perf_counter() - begun) / each
