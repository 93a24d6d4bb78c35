"""How long `hostler --help`, and that of each verb, takes against a Python that does nothing."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import peers
from row import Row

from hostler.cli.main import VERBS

TIMES = 11
BOUND = 5  # times a Python that does nothing


def main() -> list[Row]:
    ours: list[float] = []
    floor: list[float] = []
    verbs: dict[str, list[float]] = {verb: [] for verb in VERBS}
    for _ in range(TIMES):
        ours.append(_seconds("-m", "hostler", "--help"))
        floor.append(_seconds("-c", "pass"))
        for verb, times in verbs.items():
            times.append(_seconds("-m", "hostler", verb, "--help"))
    least = min(floor) * 1e3
    slowest = max(verbs, key=lambda verb: min(verbs[verb]))
    return [
        Row("hostler --help", min(ours) * 1e3, least, BOUND, "ms"),
        Row(
            f"slowest of {len(verbs)} verbs: {slowest} --help", min(verbs[slowest]) * 1e3, least, BOUND, "ms"
        ),
        *_peers(least),
    ]


def _peers(least: float) -> list[Row]:
    return [Row(f"  {name} --help", taken, least, None, "ms") for name, taken in peers.helps(3).items()]


def _seconds(*words: str) -> float:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    begun = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, env=environment, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun
