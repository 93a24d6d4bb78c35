"""A frame of 10,000 runs, each with 100 points of 5 metrics and 20 keys, against one Parquet file of it.

The store is a folder as workers leave it: logs, ends, fragments, and segments of a hundred runs. Once
without anything cached, once again with what the first reader has kept. Each reading is a fresh process,
timed from when its imports are done. Peers read a tenth of the runs, and are shown for all of them.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from row import Row

from hostler import settings
from hostler.records import layout, project
from hostler.records.body import encode
from hostler.records.series import metrics, packing, segments
from hostler.records.series.points import Point, pack
from hostler.records.series.segments import PackedRun
from hostler.records.sweep import sweeps
from hostler.spec import space, spans
from hostler.spec.job import Job
from hostler.spec.rounds import Round
from hostler.store import Store, open_store

RUNS, POINTS, METRICS, KEYS, TIMES, SHARE = 10_000, 100, 5, 20, 7, 10

FORMS = ({"min": 0.0, "max": 1.0}, {"min": 0, "max": 1000, "int": True}, ["adam", "sgd", "lion"])

OURS = """
import sys, time
import numpy, pandas
import hostler.analysis.frame, hostler.analysis.sheet, hostler.analysis.tables
import hostler.analysis.filters, hostler.spec.space, hostler.store.folder
begun = time.perf_counter()
found = hostler.analysis.frame.frame(sys.argv[1])
print(time.perf_counter() - begun, len(found))
"""
PARQUET = """
import sys, time
import pyarrow.parquet, pandas
begun = time.perf_counter()
found = pyarrow.parquet.read_table(sys.argv[1]).to_pandas()
print(time.perf_counter() - begun, len(found))
"""


def main() -> list[Row]:
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as name:
        folder = Path(name)
        fill(folder / "store")
        os.environ["HOSTLER_CACHE"] = str(folder / "cache")
        cold, warm, floor = [], [], []
        _write_parquet(folder)
        for _ in range(TIMES):
            shutil.rmtree(folder / "cache", ignore_errors=True)
            cold.append(_seconds(OURS, folder / "store"))
            warm.append(_seconds(OURS, folder / "store"))
            floor.append(_seconds(PARQUET, folder / "runs.parquet"))
        least = statistics.median(floor)
        rows = [
            Row(
                f"frame of {RUNS} runs, nothing cached, to one Parquet file",
                statistics.median(cold),
                least,
                1.5,
                "s",
            ),
            Row("the same with the reader's cache", statistics.median(warm), least, 0.8, "s"),
        ]
        return rows + [Row(name, took, least, None, "s") for name, took in _peers(folder).items()]


def fill(folder: Path) -> None:
    """A sweep whose runs have all ended, as its workers would have left it, but not made durable."""
    store = open_store(str(folder))
    project.ensure(store, "bench", settings.timing(one_machine=True))
    dice = random.Random(1)
    found = space.parse({f"key{n}": FORMS[n % 3] for n in range(KEYS)}, method="random", runs=RUNS)
    command = ("python", "train.py")
    rounds = (Round(found, spans.whole(found.count), command),)
    job = Job(name="all", command=command, runs=(), rounds=rounds, metric="m0", goal="min")
    sweeps.submit(store, job)
    for under in (layout.logs_of("all"), layout.ends("all")):
        os.makedirs(folder / under, exist_ok=True)
    for batch in packing.batches(_runs(store, folder, job, dice)):
        segments.write(store, "all", batch, segments.newest(store, "all"))


def _runs(store: Store, folder: Path, job: Job, dice: random.Random) -> Iterator[PackedRun]:
    for index, run in enumerate(sweeps.run_ids(job)):
        points = [
            Point(n, 1.7e9 + n, {f"m{m}": dice.random() for m in range(METRICS)}) for n in range(POINTS)
        ]
        claim = {"kind": "claim", "session": "w-1", "host": "here", "after": None}
        end = {
            "kind": "end",
            "attempt": 1,
            "state": "done",
            "host": "here",
            "attempts": 1,
            "started": 1.7e9 + index,
            "seconds": 1.5,
            "total": 1.5,
            "at": 1.7e9 + index + 1.5,
            "exit": 0,
            "step": POINTS - 1,
            "metrics": metrics.summary(points),
            "code": "0" * 64,
        }
        for key, record in (
            (layout.log_entry("all", run, 1), claim),
            (layout.log_entry("all", run, 2), end),
            (layout.end("all", run, 2), end),
        ):
            (folder / key).write_bytes(encode(record))
        (folder / layout.metrics(run)).mkdir(parents=True)
        fragment = metrics.fragment({"attempt": 1, "start": 0, "origin": None}, pack(points))
        (folder / layout.metric_fragment(run, 1, 0, 0)).write_bytes(fragment)
        yield segments.packed(run, 2, end, job.params(index), points)


def _write_parquet(folder: Path) -> None:
    """The frame, with the steps once: they are the same for all metrics."""
    import hostler

    found = hostler.frame(folder / "store")
    found = found.drop(columns=[f"m{m}.steps" for m in range(1, METRICS)])
    found.to_parquet(folder / "runs.parquet")


def _seconds(script: str, path: Path) -> float:
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)], check=True, capture_output=True, text=True
    ).stdout.split()
    assert int(done[1]) == RUNS, done
    return float(done[0])


def _peers(folder: Path) -> dict[str, float]:
    """A CSV file for each run, read by pandas; a JSONL file for each, read by polars."""
    count = RUNS // SHARE
    dice = random.Random(2)
    lines = [{"step": n, **{f"m{m}": dice.random() for m in range(METRICS)}} for n in range(POINTS)]
    for kind, text in (("csv", _csv(lines)), ("jsonl", "\n".join(map(json.dumps, lines)))):
        (folder / kind).mkdir()
        for n in range(count):
            (folder / kind / f"{n:05d}").write_text(text)
    import pandas

    found = {"a CSV file for each run, pandas": _took(folder / "csv", pandas.read_csv)}
    try:
        import polars
    except ModuleNotFoundError:
        return found
    return {**found, "a JSONL file for each run, polars": _took(folder / "jsonl", polars.read_ndjson)}


def _csv(lines: list[dict[str, float]]) -> str:
    return "\n".join([",".join(lines[0]), *(",".join(map(str, line.values())) for line in lines)])


def _took(folder: Path, read: Callable[[Path], object]) -> float:
    begun = time.perf_counter()
    for path in sorted(folder.iterdir()):
        read(path)
    return (time.perf_counter() - begun) * SHARE


if __name__ == "__main__":
    for row in main():
        print(
            f"{row.name}: {row.ours:.3f} {row.unit}, floor {row.floor:.3f}, {row.ratio:.2f}x of {row.bound}"
        )
