"""One `run.log` with five metrics against packing the same bytes into a mapped file; and none may be lost.

The slowest of a hundred calls counts, too: of both, timed one by one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import peers
from row import Row

from hostler.records.series.points import survey

ROUNDS = 40
EACH = 500
BOUND = 3.1  # times the floor: what was measured and a third
LATE = 8.3  # of the 99th of a hundred calls, in the same way

# The floor is a function that takes the same words and packs their values and the time, and no more. Both
# take turns in one process, as a worker would start it, which is killed after the last point.
SCRIPT = """
import json, mmap, os, signal, statistics, struct, time
import hostler

layout = struct.Struct("<IBHdq5d")
pack, width, clock = layout.pack_into, layout.size, time.time
room, at = mmap.mmap(-1, layout.size * EACH), 0

def bare(step, **metrics):
    global at
    pack(room, at, width, 2, 0, clock(), step, *metrics.values())
    at += width

def late_call(log):
    # more than 99 of a hundred take
    taken = []
    for n in range(EACH):
        begun = time.perf_counter_ns()
        log(step=n, loss=0.1, accuracy=0.2, lr=0.3, norm=0.4, speed=0.5)
        taken.append(time.perf_counter_ns() - begun)
    return sorted(taken)[EACH * 99 // 100] / 1e9

def timed(log):
    begun = time.perf_counter()
    for n in range(EACH):
        log(step=n, loss=0.1, accuracy=0.2, lr=0.3, norm=0.4, speed=0.5)
    return (time.perf_counter() - begun) / EACH

run = hostler.start()
ours, floor, late, bare_late = [], [], [], []
for part in range(ROUNDS):
    ours.append(timed(run.log))
    late.append(late_call(run.log))
    at = 0
    floor.append(timed(bare))
    at = 0
    bare_late.append(late_call(bare))
print(json.dumps([statistics.median(each) for each in (ours, floor, late, bare_late)]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def main() -> list[Row]:
    points = 2 * ROUNDS * EACH
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as name:
        folder = Path(name)
        ours, floor, late, bare_late = _measured(folder)
        found = survey(folder / "metrics.bin").points
    return [
        Row("run.log, five metrics", ours * 1e6, floor * 1e6, BOUND, "us"),
        Row("the same, the 99th of 100 calls", late * 1e6, bare_late * 1e6, LATE, "us"),
        Row(f"points after SIGKILL, of {points}", points / max(found, 1), 1, 1, "of each"),
        *(Row(f"  {name}", taken, floor * 1e6, None, "us") for name, taken in peers.logs().items()),
    ]


def _measured(folder: Path) -> list[float]:
    (folder / "checkpoint").mkdir()
    (folder / "output").mkdir()
    environment = {**os.environ, "HOSTLER_DIR": str(folder), "HOSTLER_RUN": "bench"}
    program = f"ROUNDS, EACH = {ROUNDS}, {EACH}\n{SCRIPT}"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    return [float(each) for each in json.loads(done.stdout)]
