"""How long `hostler --help` takes against a Python that does nothing."""

from __future__ import annotations

import subprocess
import sys
import time

import peers
from row import Row

TIMES = 11


def main() -> list[Row]:
    ours: list[float] = []
    floor: list[float] = []
    for _ in range(TIMES):
        ours.append(_seconds("-m", "hostler", "--help"))
        floor.append(_seconds("-c", "pass"))
    least = min(floor) * 1e3
    found = [Row("hostler --help", min(ours) * 1e3, least, 5, "ms")]
    return found + [
        Row(f"  {name} --help", taken, least, None, "ms") for name, taken in peers.helps(3).items()
    ]


def _seconds(*words: str) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun
