"""What a short run costs inside `hostler sweep`, by the command itself: from its start to its end.

A sweep of 20 trivial runs and one of 220, two at a time in a folder on disk, in turns with bare processes.
The 200 runs more are what a run costs; what the command and its worker cost once is in both. Medians.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import bench_runs
from row import Row

from hostler.records.packs import packer
from hostler.records.packs.packed_store import open_store
from hostler.records.sweep import sweeps

FEW, MANY, ROUNDS = 20, 220, 5
EACH = 0.5  # bare processes that one run may take
WHOLE = 0.6  # seconds that the command may take for few runs
LEFT = 0.2  # files of a run in a sweep that is packed
PROJECT = "command: python t.py\nfleets: {here: {backend: local, workers: 1, slots: 2}}\nfleet: here\n"


def main() -> list[Row]:
    few, each, bare, left = [], [], [], []
    for n in range(ROUNDS):
        with tempfile.TemporaryDirectory(prefix="hostler-bench-") as name:
            folder = Path(name)
            (folder / "project").mkdir()
            (folder / "project" / "t.py").write_text("pass\n")
            (folder / "project" / "hostler.yaml").write_text(PROJECT)
            bare.append(bench_runs._bare(folder))
            short, long = _swept(folder, f"few{n}", FEW), _swept(folder, f"many{n}", MANY)
            few.append(short)
            each.append((long - short) / (MANY - FEW) * 1e3)
            left.append(_packed(folder / "project" / ".hostler", f"many{n}") / MANY)
    median = statistics.median
    return [
        Row(f"a run inside hostler sweep of {MANY} (2 slots)", median(each), median(bare), EACH, "ms"),
        Row(f"hostler sweep of {FEW} runs, from the command to its end", median(few), WHOLE, 1, "s"),
        Row("files and folders of a run, once its sweep is packed", median(left), LEFT, 1, "files"),
    ]


def _packed(url: Path, name: str) -> int:
    """Files and folders of a sweep and its runs after `hostler pack`."""
    store = open_store(str(url))
    packer.pack(store, sweeps.load(store, name), wait=lambda seconds: None)
    runs = [path for path in (url / "runs").glob(f"*-{name}-*") for path in (path, *path.rglob("*"))]
    return len(runs) + sum(1 for _ in (url / "sweeps" / name).rglob("*"))


def _swept(folder: Path, name: str, runs: int) -> float:
    """Seconds that the command takes."""
    file = folder / "project" / f"{name}.yaml"
    file.write_text(f"name: {name}\nparameters:\n  n: {list(range(runs))}\n")
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(folder), "HOSTLER_CACHE": str(folder / "cache")}
    environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), environment["PATH"]])
    words = [sys.executable, "-m", "hostler", "sweep", "-y", "--wait", file.name]
    begun = time.perf_counter()
    done = subprocess.run(words, cwd=file.parent, env=environment, capture_output=True, text=True)
    taken = time.perf_counter() - begun
    assert done.returncode == 0, done.stdout + done.stderr
    return taken


if __name__ == "__main__":
    for row in main():
        print(
            f"{row.name}: {row.ours:.2f} {row.unit}, floor {row.floor:.2f}, {row.ratio:.2f}x of {row.bound}"
        )
