"""How long `hostler status`, `best` and `show` take on stores of 10,000 and 100,000 ended runs, against a
Python that does nothing.

The bounds are what was measured and a third, and no more than 0.25, 0.2 and 0.15 s where that takes 11 ms; of
the larger store 0.8, 0.5 and 0.2 s.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from row import Row

from hostler import settings
from hostler.records import layout, project
from hostler.records.body import encode
from hostler.records.series import packing
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store import open_store

TIMES = 7
BOUNDS = {  # ended runs → command → times `python -c pass`
    10_000: {"status": 14.6, "best all": 16.4, "show all/77": 10.8},
    100_000: {"status": 72.7, "best all": 45.5, "show all/77": 18.2},
}
MEGABYTES = 150  # that `status` of the most runs may take
PEAK = "int(open('/proc/self/status').read().split('VmHWM:')[1].split()[0]) / 1024"  # megabytes
HAD = f"'%s %s' % (__import__('time').process_time(), {PEAK})"


def main() -> list[Row]:
    return [row for count, bounds in BOUNDS.items() for row in rows(count, bounds)]


def rows(count: int, bounds: Mapping[str, float]) -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as name:
        store = Path(name) / "store"
        fill(store, count)
        floor: list[float] = []
        ours: dict[str, list[float]] = {words: [] for words in bounds}
        for _ in range(TIMES):
            for words, took in ours.items():
                took.append(_milliseconds("-m", "hostler", *words.split(), "--store", str(store)))
            floor.append(_milliseconds("-c", "pass"))
        found = [
            Row(
                f"hostler {words}, {count} ended runs",
                statistics.median(took),
                statistics.median(floor),
                bounds[words],
                "ms",
            )
            for words, took in ours.items()
        ]
        if count == max(BOUNDS):
            _, megabytes = used("status", store)
            found.append(Row("the same: memory of status", megabytes, MEGABYTES, 1, "MB"))
        return found


def fill(folder: Path, count: int) -> None:
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
        for k, record in ((1, claim), (2, end)):
            (folder / layout.log_entry("all", run, k)).write_bytes(encode(record))
        os.link(folder / layout.log_entry("all", run, 2), folder / layout.end("all", run, 2))
    packing.compact(store, job)


def _milliseconds(*words: str) -> float:
    begun = time.perf_counter()
    subprocess.run([sys.executable, *words], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return (time.perf_counter() - begun) * 1e3


def used(words: str, folder: Path) -> tuple[float, float]:
    """CPU seconds and megabytes of a command, the least of three."""
    code = "import sys; from hostler.cli.main import main; sys.argv[0] = 'hostler'; main()"
    return least(code, [*words.split(), "--store", str(folder)])


def least(code: str, words: Sequence[str], times: int = 3) -> tuple[float, float]:
    """The process itself says what it has used: what a parent is told counts its own memory, too."""
    used = [float(number) for _ in range(times) for number in _run(code, words)]
    return min(used[::2]), min(used[1::2])


def _run(code: str, words: Sequence[str]) -> list[str]:
    with tempfile.NamedTemporaryFile("r") as told:
        last = f"import atexit; atexit.register(lambda: open({told.name!r}, 'w').write({HAD}))"
        command = [sys.executable, "-c", f"{last}\n{code}", *words]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        return told.read().split()
