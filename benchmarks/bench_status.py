"""How long `hostler status`, `best` and `show` take on a store of 10,000 ended runs, against a Python that
does nothing.

The bounds are what was measured and a third, and no more than 0.25, 0.2 and 0.15 s where that takes 11 ms.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from row import Row

from hostler import settings
from hostler.records import layout, project
from hostler.records.body import encode
from hostler.records.series import packing
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import open_store

RUNS, TIMES = 10_000, 7
BOUNDS = {"status": 15.9, "best all": 18.2, "show all/77": 12.4}  # times `python -c pass`


def main() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as name:
        store = Path(name) / "store"
        fill(store)
        floor: list[float] = []
        ours: dict[str, list[float]] = {words: [] for words in BOUNDS}
        for _ in range(TIMES):
            for words, took in ours.items():
                took.append(_milliseconds("-m", "hostler", *words.split(), "--store", str(store)))
            floor.append(_milliseconds("-c", "pass"))
    return [
        Row(f"hostler {words}, {RUNS} ended runs", min(took), min(floor), BOUNDS[words], "ms")
        for words, took in ours.items()
    ]


def fill(folder: Path, count: int = RUNS) -> None:
    """A sweep whose runs have all ended, as its workers would have left it, but not made durable."""
    store = open_store(str(folder))
    project.ensure(store, "bench", settings.timing(one_machine=True))
    job = Job(
        name="all",
        command=("python", "train.py"),
        runs=tuple({"lr": n / 1e4, "seed": n} for n in range(count)),
        metric="loss",
    )
    sweeps.submit(store, job)
    loss = {"last": 0.25, "min": 0.25, "max": 2.0, "step": 100}
    claim = {"kind": "claim", "session": "w-1", "host": "here", "after": None}
    end = {
        "kind": "end",
        "attempt": 1,
        "state": "done",
        "host": "here",
        "attempts": 1,
        "started": 1.7e9,
        "seconds": 1.5,
        "total": 1.5,
        "exit": 0,
        "step": 100,
        "metrics": {"loss": loss, "accuracy": loss},
        "ran": {"facts": "0" * 32, "command": ["python", "train.py", "--lr", "0.1", "--seed", "1"]},
        "use": {"system/cpu": 0.5, "system/memory": 1e8},
    }
    for folder_of in (layout.logs_of("all"), layout.ends("all")):
        os.makedirs(folder / folder_of, exist_ok=True)
    for run in sweeps.run_ids(job):
        for key, record in (
            (layout.log_entry("all", run, 1), claim),
            (layout.log_entry("all", run, 2), end),
            (layout.end("all", run, 2), end),
        ):
            (folder / key).write_bytes(encode(json.loads(json.dumps(record))))
    packing.compact(store, job)


def _milliseconds(*words: str) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - begun) * 1e3
