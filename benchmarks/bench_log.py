"""One `run.log` with five metrics against packing the same bytes into a mapped file; and none may be lost."""

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

# The floor is a function that takes the same words and packs their values and the time, and no more. Both
# take turns in one process, as a worker would start it, which is killed after the last point.
SCRIPT = """
import json, mmap, os, signal, struct, time
import hostler

layout = struct.Struct("<IBHdq5d")
pack, width, clock = layout.pack_into, layout.size, time.time
room, at = mmap.mmap(-1, layout.size * EACH), 0

def bare(step, **metrics):
    global at
    pack(room, at, width, 2, 0, clock(), step, *metrics.values())
    at += width

def timed(log):
    begun = time.perf_counter()
    for n in range(EACH):
        log(step=n, loss=0.1, accuracy=0.2, lr=0.3, norm=0.4, speed=0.5)
    return (time.perf_counter() - begun) / EACH

run = hostler.start()
ours, floor = [], []
for part in range(ROUNDS):
    ours.append(timed(run.log))
    at = 0
    floor.append(timed(bare))
print(json.dumps([min(ours), min(floor)]), flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def main() -> list[Row]:
    points = ROUNDS * EACH
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as name:
        folder = Path(name)
        ours, floor = _measured(folder)
        found = survey(folder / "metrics.bin").points
    return [
        Row("run.log, five metrics", ours * 1e6, floor * 1e6, BOUND, "us"),
        Row(f"points after SIGKILL, of {points}", points / max(found, 1), 1, 1, "of each"),
        *(Row(f"  {name}", taken, floor * 1e6, None, "us") for name, taken in peers.logs().items()),
    ]


def _measured(folder: Path) -> tuple[float, float]:
    (folder / "checkpoint").mkdir()
    (folder / "output").mkdir()
    environment = {**os.environ, "HOSTLER_DIR": str(folder), "HOSTLER_RUN": "bench"}
    program = f"ROUNDS, EACH = {ROUNDS}, {EACH}\n{SCRIPT}"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    ours, floor = json.loads(done.stdout)
    return float(ours), float(floor)
