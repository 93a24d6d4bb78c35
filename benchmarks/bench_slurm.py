"""Submitting 1,000 runs to a real Slurm, against one bare `sbatch --array` and the bytes that are written.

The partition is closed: nothing but the queueing is measured, and what is looked at before it. Without code
and data, like bench_submit.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from statistics import median

import peers
from row import Row

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from hostler.backends.project_file import load_sweep
from hostler.backends.slurm.backend import SlurmBackend
from hostler.fleet.launcher import Launcher
from hostler.fleet.sweep import draft_sweep, edited
from hostler.records.sweep import sweeps
from hostler.spec.project import Fleet, default_project
from hostler.store import open_store
from slurm_cluster import PROGRAMS, Cluster, cluster

RUNS = 1000
TIMES = 25
BOUND = (
    1.7  # sbatch takes 5 to 7 ms; ours adds 3 ms, two thirds of them spent by a Python whose cache is cold
)
LOOP = 25  # sbatch commands of the loop that are measured; the rest would take as long each
FLEET = Fleet("bench", "slurm", workers=32)
SWEEP = f"command: python train.py\nparameters:\n  a: {{start: 0, step: 1, count: {RUNS}}}\n"
SUBMITIT = """
import sys, time
import submitit
executor = submitit.SlurmExecutor(folder="jobs", max_num_timeout=1)
executor.update_parameters(array_parallelism=32, time=5)
begun = time.perf_counter()
jobs = executor.map_array(abs, range(int(sys.argv[1])))
print("took", time.perf_counter() - begun)
"""


def main() -> list[Row]:
    if os.geteuid() != 0 or any(shutil.which(program) is None for program in PROGRAMS):
        print(
            "bench_slurm: needs root, slurmctld, slurmd, slurm-client and munge; not measured",
            file=sys.stderr,
        )
        return []
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as place:
        folder = Path(place)
        folder.chmod(0o755)
        with cluster(folder / "slurm", nodes=1, cpus=1, lines=("MaxArraySize=1001",)) as site:
            os.environ.update(site.variables)
            site.run("scontrol", "update", "PartitionName=main", "State=DOWN")
            return _rows(site, folder)


def _rows(site: Cluster, folder: Path) -> list[Row]:
    (folder / "sweep.yaml").write_text(SWEEP)
    ours, bare, writes = list[float](), list[float](), list[float]()
    for n in range(TIMES):  # in turns
        bare.append(_timed(site, _array))
        ours.append(_timed(site, lambda n=n: _submit(folder, f"s{n}")))  # type: ignore[misc]
        writes.append(_timed(site, lambda n=n: _write(folder, f"s{n}")))  # type: ignore[misc]
    floor = median(bare) + median(writes)
    loop = _timed(site, lambda: [_sbatch() for _ in range(LOOP)]) / LOOP * RUNS
    found = [Row(f"submit {RUNS:,} runs to Slurm", median(ours), floor, BOUND, "s")]
    found.append(Row("  a shell loop of sbatch", loop, floor, None, "s"))
    exe = peers.python()
    taken = peers.took(exe, "submitit", SUBMITIT, RUNS) if exe else None
    return [*found, *([Row("  submitit", taken, floor, None, "s")] if taken else [])]


def _submit(folder: Path, name: str) -> None:
    store = open_store(str(folder / "store"))
    project = default_project(folder)
    workers = Launcher(project, store.url, FLEET, SlurmBackend()).prepared(store)
    job = replace(draft_sweep(load_sweep(folder / "sweep.yaml", project)), name=name)
    job = edited(store, None, job).job
    assert sweeps.submit(store, job)
    [queued] = workers.start_missing([name], RUNS, new=True, jobs=[job])
    assert queued.count == RUNS


def _write(folder: Path, name: str) -> None:
    """The same bytes, by the store alone."""
    store = open_store(str(folder / "store"))
    [key] = [entry.key for entry in store.list(f"sweeps/{name}/")]
    store.put(f"copy-of-{key}", store.get(key).data, if_absent=True)


def _array() -> None:
    _sbatch(f"--array=0-{RUNS - 1}%32")


def _sbatch(*words: str) -> None:
    subprocess.run(
        ["sbatch", "--parsable", *words, "--output=/dev/null", "/dev/stdin"],
        input=b"#!/bin/sh\ntrue\n",
        check=True,
        capture_output=True,
    )


def _timed(site: Cluster, act: Callable[[], object]) -> float:
    begun = time.perf_counter()
    act()
    taken = time.perf_counter() - begun
    site.run("scancel", "--user", "root")
    return taken


if __name__ == "__main__":
    for row in main():
        print(row.name, f"{row.ours:.4g}", f"{row.floor:.4g}", "bound", row.bound)
