"""What a run costs besides its script: 200 trivial ones on 2 slots, records kept, against bare processes.

The worker's own start and the first run, which is always started afresh, are outside the measured time,
as is the start of the benchmark for the bare processes. Rounds alternate, and each row is a median. A
warm run may take half of a bare process, and one that imports torch one and a half times a bare fork.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import peers
from row import Row

from hostler import settings
from hostler.fleet.snapshot import snapshot
from hostler.records import project
from hostler.records.rows import rows
from hostler.records.sweep import sweeps
from hostler.spec.job import Job, Source
from hostler.store import open_store
from hostler.worker.claim.room import Room
from hostler.worker.claim.slots import Offer
from hostler.worker.loop import Worker, WorkerTerms
from hostler.worker.machine import Machine
from hostler.worker.process.process import Process
from hostler.worker.process.warm import Warmth
from hostler.worker.session_name import new_session

RUNS, SLOTS, ROUNDS, TIMES = 200, 2, 5, 9
LARGEST_WARM = 0.5  # bare processes that one warm run may take


def main() -> list[Row]:
    bare, cold, warm = [], [], []
    for _ in range(ROUNDS):
        with _place() as folder:
            bare.append(_bare(folder))
            cold.append(_ours(folder, warm=False))
            warm.append(_ours(folder, warm=True))
    median = statistics.median
    floor = median(bare)
    found = [
        Row(f"{RUNS} trivial runs on {SLOTS} slots, by exec, each", median(cold), floor, 2, "ms"),
        Row(f"{RUNS} trivial runs on {SLOTS} slots, warm, each", median(warm), floor, LARGEST_WARM, "ms"),
    ]
    found += [Row(f"  {peer}, each", taken, floor, None, "ms") for peer, taken in peers.each_run().items()]
    python = next(filter(_has_torch, [sys.executable, peers.python()]), None)
    if python is None:
        print("torch is not installed here: no row for a script that imports it", file=sys.stderr)
        return found
    with _place() as folder:
        fresh, forked = _starts(folder, python, "import torch\n")
    bare = _forks(python)
    return [
        *found,
        Row("a script that imports torch, warm (floor: afresh)", forked, fresh, 1 / 40, "ms"),
        Row("the same (floor: fork and _exit of what has imported it)", forked, bare, 1.5, "ms"),
    ]


@contextmanager
def _place() -> Iterator[Path]:
    """A folder with a project of one script, for everything that is written."""
    with tempfile.TemporaryDirectory(prefix="hostler-bench-") as name:
        folder = Path(name)
        kept = {key: os.environ.get(key) for key in ("XDG_RUNTIME_DIR", "HOSTLER_CACHE", "PYTHONPATH")}
        os.environ.update(XDG_RUNTIME_DIR=name, HOSTLER_CACHE=str(folder / "cache"), PYTHONPATH="")
        (folder / "project").mkdir()
        (folder / "project" / "t.py").write_text("pass\n")
        try:
            yield folder
        finally:
            for key, value in kept.items():
                os.environ.pop(key, None)
                os.environ.update({key: value} if value is not None else {})


def _bare(folder: Path) -> float:
    """Milliseconds for each of the bare processes."""
    left = list(range(RUNS))

    def work() -> None:
        while left:
            left.pop()
            subprocess.Popen(
                [sys.executable, "t.py"], cwd=folder / "project", stdin=subprocess.DEVNULL
            ).wait()

    threads = [threading.Thread(target=work) for _ in range(SLOTS)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return (time.perf_counter() - begun) / RUNS * 1e3


def _ours(folder: Path, *, warm: bool) -> float:
    """Milliseconds for each run of a worker that keeps all records in a folder store."""
    name = "warm" if warm else "cold"
    store = open_store(str(folder / f"store-{name}"))
    timing = settings.timing(one_machine=True)
    project.ensure(store, "bench", timing)
    taken = snapshot.take(folder / "project", settings.sizes(), cache=folder / "cache")
    snapshot.upload(store, taken)
    for sweep, count in (("first", 1), ("all", RUNS)):
        runs = tuple({"n": n} for n in range(count))
        source = Source(snapshot=taken.sha)
        sweeps.submit(store, Job(name=sweep, command=(sys.executable, "t.py"), runs=runs, source=source))
    parents = _Kept(folder / f"parents-{name}", wait=True) if warm else None
    seconds = {}
    for sweep in ("first", "all"):
        machine = Machine(store, folder / "cache", new_session(), timing, say=_mute, warm=parents)
        worker = Worker(
            machine, Room(Offer(cpus=64, memory=1 << 50, slots=SLOTS)), WorkerTerms(only=(sweep,))
        )
        begun = time.perf_counter()
        worker.run()
        seconds[sweep] = time.perf_counter() - begun
    if parents:
        parents.end()
    states = [row.state for row in rows(store, ["all"])]
    assert states == ["done"] * RUNS, states
    return seconds["all"] / RUNS * 1e3


class _Kept(Warmth):
    """Parents that outlive the worker of the first run, as they do where one worker does it all."""

    def close(self) -> None:
        pass

    def end(self) -> None:
        super().close()


def _has_torch(python: str | None) -> bool:
    question = "import importlib.util as u, sys; sys.exit(u.find_spec('torch') is None)"
    return python is not None and subprocess.run([python, "-c", question]).returncode == 0


FORKS = """
import gc, os, statistics, time, torch
def once():
    begun = time.perf_counter()
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    return (time.perf_counter() - begun) * 1e3
gc.collect()
gc.freeze()
print(statistics.median(once() for _ in range(25)))
"""


def _forks(python: str) -> float:
    """Milliseconds for a fork of a process that has imported torch, and its end."""
    done = subprocess.run([python, "-c", FORKS], check=True, capture_output=True, text=True)
    return float(done.stdout)


def _starts(folder: Path, python: str, script: str) -> tuple[float, float]:
    """Milliseconds from the start to the end of a script: afresh, and warm."""
    cwd = folder / "project"
    (cwd / "t.py").write_text(script)
    parents = Warmth(folder / "parents", wait=True)
    argv, env = [python, "t.py"], dict(os.environ)

    def once() -> float:
        begun = time.perf_counter()
        process = parents.start(argv, cwd=cwd, env=env, folder=folder, log=folder / "log", code=[])
        process.wait()
        taken = time.perf_counter() - begun
        process.close()
        return taken * 1e3

    def afresh() -> float:
        begun = time.perf_counter()
        process = Process.start(argv, cwd=cwd, env=env, folder=folder, log=folder / "log")
        process.wait()
        taken = time.perf_counter() - begun
        process.close()
        return taken * 1e3

    once()
    assert parents.refusals() == [], parents.refusals()
    fresh = statistics.median(afresh() for _ in range(TIMES))
    forked = statistics.median(once() for _ in range(TIMES))
    parents.close()
    return fresh, forked


def _mute(line: str) -> None:
    """A worker's words are not for the table."""
