"""How long `hostler --help`, that of each verb, and a look at an empty store take against a Python that does
nothing; and a verb's completion, with every press of a key."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time

import peers
from row import Row

from hostler.cli.main import VERBS

TIMES = 11
HELP, BOUND, STATUS, COMPLETION = 2.6, 5, 6, 5.6  # times a Python that does nothing

COMPLETING = {"_HOSTLER_COMPLETE": "bash_complete", "COMP_WORDS": "hostler s", "COMP_CWORD": "1"}


def main() -> list[Row]:
    ours: list[float] = []
    floor: list[float] = []
    status: list[float] = []
    completion: list[float] = []
    verbs: dict[str, list[float]] = {verb: [] for verb in VERBS}
    for _ in range(TIMES):
        ours.append(_seconds("-m", "hostler", "--help"))
        floor.append(_seconds("-c", "pass"))
        status.append(_status())
        completion.append(_seconds("-m", "hostler", **COMPLETING))
        for verb, times in verbs.items():
            times.append(_seconds("-m", "hostler", verb, "--help"))
    median = statistics.median
    least = median(floor) * 1e3
    slowest = max(verbs, key=lambda verb: median(verbs[verb]))
    return [
        Row("hostler --help", median(ours) * 1e3, least, HELP, "ms"),
        Row("hostler status of an empty store", median(status) * 1e3, least, STATUS, "ms"),
        Row("completion of a verb", median(completion) * 1e3, least, COMPLETION, "ms"),
        Row(
            f"slowest of {len(verbs)} verbs: {slowest} --help",
            median(verbs[slowest]) * 1e3,
            least,
            BOUND,
            "ms",
        ),
        *_peers(least),
    ]


def _peers(least: float) -> list[Row]:
    return [Row(f"  {name} --help", taken, least, None, "ms") for name, taken in peers.helps(3).items()]


def _status() -> float:
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as folder:
        return _seconds("-m", "hostler", "status", cwd=folder)


def _seconds(*words: str, cwd: str | None = None, **variables: str) -> float:
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, **variables}
    begun = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, cwd=cwd, env=environment, stdout=subprocess.DEVNULL)
    return time.perf_counter() - begun
