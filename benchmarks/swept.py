"""Sweeps of groups from the command to the last end, taken apart: `swept.py linear 256 lenets 256`.

For each: milliseconds a run, when the first and the last run was taken and had ended, seconds of processor
time of the worker and of the trainings, files and folders that a run left. Without a GPU sets are smaller.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from bench_fused import ON_GPU, sweep_project

PACE = 0.1  # seconds between two looks at the processes
SETS = {"linear": ("123_2_32561", "linear/bias"), "lenets": ("1x28x28_10_20000", "tiny/lenet")}
ON_CORES = {"linear": "123_2_2000", "lenets": "1x28x28_10_500"}


class Processes:
    """Processor time of this sweep's processes, as last seen."""

    def __init__(self, store: str) -> None:
        self._store, self._over = store, threading.Event()
        self._seen: dict[str, dict[int, float]] = {"worker": {}, "training": {}}
        self._thread = threading.Thread(target=self._loop, daemon=True)
        self._thread.start()

    def stop(self) -> dict[str, float]:
        """Waits for the worker, which writes on for a moment after the last end."""
        self._over.set()
        self._thread.join()
        return {kind: round(sum(found.values()), 2) for kind, found in self._seen.items()}

    def _loop(self) -> None:
        patience = 100
        while patience and (self._look() or not self._over.is_set()):
            patience -= self._over.is_set()
            time.sleep(PACE)

    def _look(self) -> bool:
        """Whether the worker is there."""
        there = False
        for path in Path("/proc").glob("[0-9]*"):
            try:
                words = (path / "cmdline").read_bytes().decode("utf-8", "replace")
                kind = "worker" if self._store in words and "--session" in words else ""
                if not kind and "train\0config.yaml" in words and self._store in _environment(path):
                    kind = "training"
                if kind:
                    fields = (path / "stat").read_text().rpartition(")")[2].split()
                    used = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
                    self._seen[kind][int(path.name)] = used
                    there |= kind == "worker"
            except OSError:
                continue
        return there


def _environment(path: Path) -> str:
    return (path / "environ").read_bytes().decode("utf-8", "replace")


def swept(name: str, count: int, *, gpu: bool) -> str:
    data, model = SETS[name]
    config = ON_GPU.format(data=data if gpu else ON_CORES[name], model=model) + (
        "" if gpu else "device: cpu\n"
    )
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        own = sweep_project(folder, config, count)
        processes = Processes(own["HOSTLER_STORE"])
        command = [sys.executable, "-m", "hostler", "sweep", "-y", "--wait", "sweep.yaml"]
        began = time.time()
        done = subprocess.run(command, cwd=folder, env=own, capture_output=True, text=True)
        took = time.time() - began
        used = processes.stop()
        if done.returncode:
            return f"swept: {name}: exit {done.returncode}: {(done.stdout + done.stderr)[-1500:]}"
        entries = [json.loads(path.read_bytes()) for path in (folder / "store").glob("sweeps/*/log/*.json")]
        claims = sorted(row["at"] - began for row in entries if row["kind"] == "claim")
        ends = sorted(row["at"] - began for row in entries if row["kind"] == "end")
        tree = list(os.walk(folder / "store"))
        files, folders = sum(len(row[2]) for row in tree), sum(len(row[1]) for row in tree)
    return (
        f"swept: {count} {name}: {took / count * 1e3:.1f} ms a run ({took:.1f} s); taken {claims[0]:.1f} to "
        f"{claims[-1]:.1f} s, {len(claims)} claims, ended {ends[0]:.1f} to {ends[-1]:.1f} s; CPU: worker "
        f"{used['worker'] / count * 1e3:.1f} ms a run, trainings {used['training']:.1f} s; "
        f"{files / count:.1f} files and {folders / count:.1f} folders a run"
    )


def main() -> None:
    import torch

    words = sys.argv[1:] or ["linear", "256", "lenets", "256"]
    for name, count in zip(words[::2], words[1::2], strict=True):
        print(swept(name, int(count), gpu=torch.cuda.is_available()), flush=True)


if __name__ == "__main__":
    main()
