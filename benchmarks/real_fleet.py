"""Requests of whole workers for runs that are over at once, counted at a bucket that answers late.

Each worker is a process as machines have them, one run at a time each, with `true` as the script. Its
requests are told apart by what they come with: a run, a second (heartbeats, spec and halts before a claim),
or a worker's beginning.

python benchmarks/real_fleet.py 1,200 2,200 4,400
python benchmarks/real_fleet.py --where seaweed 2,200
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import late_buckets
from late_buckets import GET, LIST, PUT, Asked, LateBucket

from hostler.records import project
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.store import open_store

BUCKETS = {"gcs": late_buckets.gcs, "seaweed": late_buckets.seaweed}
WRITTEN = {"log": "claims and ends", "ends": "copies of ends", "segments": "segments"}
BEATS, SPECS = "by the second: heartbeats", "by the second: sweeps, spec, halts, seals"
BY_SECOND = {"alive": BEATS, "interest.json": BEATS, "sweeps": SPECS, "spec": SPECS, "halts": SPECS}
BY_SECOND |= {"sealed": SPECS, "trash": SPECS}
OF_RUNS = (*WRITTEN.values(), "names and entries of logs, ends", "segments read", "points and output")
KINDS = (*OF_RUNS, *dict.fromkeys(BY_SECOND.values()), "beginning of a worker, facts of its machine")


@dataclass(frozen=True)
class Played:
    """A sweep that is over, and what its workers asked for."""

    workers: int
    runs: int
    seconds: float
    requests: Sequence[Asked]

    @property
    def kinds(self) -> Counter[str]:
        return Counter(map(kind_of, self.requests))

    @property
    def of_runs(self) -> float:
        """Requests for each run, but for those by the second and those of a worker's beginning."""
        return sum(self.kinds[kind] for kind in OF_RUNS) / self.runs

    @property
    def all(self) -> float:
        """All but heartbeats, for each run."""
        return (len(self.requests) - self.kinds[BEATS]) / self.runs


def kind_of(asked: Asked) -> str:
    if asked.operation == PUT and asked.folder in WRITTEN:
        return WRITTEN[asked.folder]
    if asked.folder in ("log", "ends") and asked.operation in (GET, LIST):
        return "names and entries of logs, ends"
    if asked.folder == "segments":
        return "segments read"
    if "runs/" in asked.key:
        return "points and output"
    return BY_SECOND.get(asked.folder, "beginning of a worker, facts of its machine")


def play(
    workers: int, runs: int, *, latency: float, where: str = "gcs", timing: Timing | None = None
) -> Played:
    """Have a sweep carried out; RuntimeError unless every run ended and every worker left in order."""
    with BUCKETS[where](latency) as bucket, tempfile.TemporaryDirectory() as folder:
        store = open_store(bucket.url)
        project.ensure(store, "scale", timing or Timing())
        sweeps.submit(store, Job(name="s", command=("true",), runs=tuple({"i": i} for i in range(runs))))
        begun = time.monotonic()
        codes = _work(bucket, workers, folder)
        seconds = time.monotonic() - begun
        ended = sum(1 for _ in store.list("sweeps/s/ends/"))
        if codes != {0} or ended != runs:
            raise RuntimeError(f"{ended} of {runs} runs ended; workers left with {codes}")
        return Played(workers, runs, seconds, bucket.requests)


def _work(bucket: LateBucket, workers: int, folder: str) -> set[int]:
    command = [sys.executable, "-m", "hostler.worker", bucket.url, "--no-parent", "--slots", "1"]
    with bucket.late():
        started = [
            subprocess.Popen(
                command,
                env={**os.environ, "HOSTLER_CACHE": f"{folder}/{n}"},
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            for n in range(workers)
        ]
        return {worker.wait() for worker in started}


def table(played: Sequence[Played]) -> Iterable[str]:
    """Lines of a table: requests of each kind for each run."""
    yield f"| what is asked for, for each run | {' | '.join(f'{p.workers}, {p.runs}' for p in played)} |"
    yield f"|---|{'---|' * len(played)}"
    for kind in KINDS:
        yield f"| {kind} | {' | '.join(f'{p.kinds[kind] / p.runs:.2f}' for p in played)} |"
    yield f"| those that come with a run | {' | '.join(f'{p.of_runs:.2f}' for p in played)} |"
    yield f"| all | {' | '.join(f'{len(p.requests) / p.runs:.2f}' for p in played)} |"


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(",") if word)


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("fleets", nargs="+", type=numbers, help="workers and runs: 2,200")
    given.add_argument("--where", choices=sorted(BUCKETS), default="gcs")
    asked = given.parse_args()
    every = [play(workers, runs, latency=0.02, where=asked.where) for workers, runs in asked.fleets]
    print("\n".join(table(every)))
