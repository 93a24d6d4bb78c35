"""What a script waits for: `import hostler`, and a whole tracked run in a fresh process."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from row import Row

TIMES = 15
RUN = "import hostler\nwith hostler.start({'lr': 0.1}) as run:\n    run.log(loss=1.0)\n"
# What no program that keeps such records safely can do without: these modules, and six durable files (of the
# project, spec, claim, metrics, end, its copy), each the first in a folder of its own.
FLOOR = """
import dataclasses, hashlib, json, mmap, os, pathlib, struct, threading
above = os.open(".", os.O_RDONLY)
for n in range(6):
    os.mkdir(str(n))
    os.fsync(above)
    handle = os.open(f"{n}/record", os.O_WRONLY | os.O_CREAT)
    os.write(handle, b"x" * 500)
    os.fsync(handle)
    os.close(handle)
    folder = os.open(str(n), os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)
"""


def main() -> list[Row]:
    nothing, imported, floor, run = _medians("pass", "import hostler", FLOOR, RUN)
    return [
        Row("import hostler", imported * 1e3, nothing * 1e3, 4 / 3, "ms"),
        Row("a tracked run in a fresh process", run * 1e3, floor * 1e3, 60 / 28, "ms"),
    ]


def _medians(*programs: str) -> list[float]:
    """Seconds of each, the median of several, in turns."""
    took: list[list[float]] = [[] for _ in programs]
    for _ in range(TIMES):
        for times, program in zip(took, programs, strict=True):
            times.append(_timed(program))
    return [statistics.median(times) for times in took]


def _timed(program: str) -> float:
    hidden = ("HOSTLER_", "PYTHONDONTWRITEBYTECODE")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as folder:
        (Path(folder) / "cache").mkdir()
        environment["HOSTLER_CACHE"] = f"{folder}/cache"
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", program], cwd=folder, env=environment, check=True)
        return time.perf_counter() - begun
