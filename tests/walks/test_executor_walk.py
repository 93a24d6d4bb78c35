"""Functions called elsewhere by `hostler.Executor`, in real processes, as a program would."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gce_world import CloudWorld, cloud
from hostler.records.rows import Row, rows
from hostler.store import open_store

SOURCE = Path(__file__).parents[2] / "src"
TRAIN = """
import os, pathlib, time
def train(lr, width=1):
    print("training with", lr)
    if lr == 3:
        raise ValueError("lr is too large")
    if lr == 2 and os.environ["HOSTLER_ATTEMPT"] == "1":
        os.kill(os.getpid(), 9)
    return {"acc": lr * width, "shape": (width, 2)}
def letters(count):
    return "x" * count
def thing():
    return object()
def forever(place):
    pathlib.Path(place).touch()
    time.sleep(600)
"""
ALL = """
import asyncio, concurrent.futures, json
import hostler
from train import letters, thing, train

async def awaited(job):
    return await job

if __name__ == "__main__":
    with hostler.Executor() as pool:
        jobs = pool.map(train, [0.5, 2, 3, 0.5], [1, 4, 1, 1])
        large, odd = pool.submit(letters, count=70_000), pool.submit(thing)
        too_large = pool.submit(letters, 200_000)
        finished = list(concurrent.futures.as_completed(jobs))
        assert len(finished) == 4 and not concurrent.futures.wait(jobs).not_done
        said = {
            "results": [job.result() for job in jobs[:2]],
            "failed": str(jobs[2].exception()),
            "logs": jobs[0].logs(),
            "equal": jobs[0].key == jobs[3].key,
            "large": len(asyncio.run(awaited(large))),
            "odd": str(odd.exception()),
            "too large": str(too_large.exception()),
        }
    print(json.dumps(said))
"""
TWICE = """
import json, sys
import hostler
from train import train
if __name__ == "__main__":
    with hostler.Executor(again="again" in sys.argv) as pool:
        print(json.dumps([job.result()["acc"] for job in pool.map(train, [0.25, 0.5])]))
"""
CANCELLED = """
import concurrent.futures, pathlib, time
import hostler
from train import forever
if __name__ == "__main__":
    pool = hostler.Executor()
    job = pool.submit(forever, "PLACE")
    while not (pathlib.Path("PLACE").exists() and job.running()):
        time.sleep(0.1)
    assert job.cancel()
    try:
        job.result(timeout=120)
    except concurrent.futures.CancelledError:
        print("cancelled", job.cancelled())
"""
AT_ONCE = """
import hostler
from train import train
if __name__ == "__main__":
    hostler.Executor().submit(train, 0.5)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "train.py").write_text(TRAIN)
    return tmp_path / "work"


def program(folder: Path, text: str, *words: str) -> subprocess.CompletedProcess[str]:
    (folder / "go.py").write_text(text)
    hidden = {"HOSTLER_STORE", "HOSTLER_DIR"}
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    environ |= {
        "HOSTLER_CACHE": str(folder.parent / "cache"),
        "PYTHONPATH": str(SOURCE),
        "HOSTLER_RESULT_MAX": "150kB",
    }
    done = subprocess.run(
        [sys.executable, "go.py", *words],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    return done


def runs(folder: Path) -> list[Row]:
    return rows(open_store(str(folder / ".hostler")))


def test_calls_bring_results_errors_and_logs(folder: Path) -> None:
    said: dict[str, Any] = json.loads(program(folder, ALL).stdout)
    assert said["results"] == [{"acc": 0.5, "shape": [1, 2]}, {"acc": 8, "shape": [4, 2]}]
    assert "train: ValueError: lr is too large (train.py:6" in said["failed"]
    assert 'File "train.py", line 6, in train' in said["failed"] and "sdk/call.py" not in said["failed"]
    assert "training with 0.5" in said["logs"] and said["equal"]
    assert len([row for row in runs(folder) if "lr" in row.params]) == 3
    assert said["large"] == 70_000
    assert "the result is a builtins.object, which is not plain data" in said["odd"]
    assert "letters() returned 200,002 bytes, and at most 150,000 are kept" in said["too large"]
    [killed] = [row for row in runs(folder) if row.params.get("lr") == 2]
    assert (killed.state, killed.attempt) == ("done", 2)


def test_same_call_in_another_process_finds_its_result(folder: Path) -> None:
    first = program(folder, TWICE)
    second = program(folder, TWICE)
    assert first.stdout == second.stdout == "[0.25, 0.5]\n"
    assert "2 calls, 2 new" in first.stderr and "2 calls, 0 new" in second.stderr
    assert [row.attempt for row in runs(folder)] == [1, 1]
    assert "2 calls, 2 new" in program(folder, TWICE, "again").stderr
    (folder / "train.py").write_text(TRAIN + "\n# other code\n")
    assert "2 calls, 2 new" in program(folder, TWICE).stderr
    assert [row.state for row in runs(folder)] == ["done"] * 6


def test_cancelled_job_stops_its_run(folder: Path) -> None:
    place = str(folder.parent / "begun")
    assert program(folder, CANCELLED.replace("PLACE", place)).stdout == "cancelled True\n"
    [row] = runs(folder)
    assert row.state == "stopped"


def test_program_that_does_not_wait_leaves_its_runs(folder: Path) -> None:
    program(folder, AT_ONCE)
    [row] = runs(folder)
    assert row.params == {"lr": 0.5}
    assert json.loads(program(folder, TWICE).stdout) == [0.25, 0.5]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[CloudWorld]:
    with cloud(tmp_path, scale=60) as made:
        yield made


ON_VMS = """
import json
import hostler
from calls import square
if __name__ == "__main__":
    with hostler.Executor(on="burst") as pool:
        print(json.dumps([job.result() for job in pool.map(square, [2, 3])]))
"""


def test_calls_run_on_vms_that_are_gone_afterwards(world: CloudWorld) -> None:
    world.project(workers=1)
    world.write("calls.py", "def square(x):\n    return x * x\n")
    world.write("go.py", ON_VMS)
    done = subprocess.run(
        [sys.executable, "go.py"],
        cwd=world.folder,
        env=world.env,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.stdout == "[4, 9]\n", done.stderr + world.story()
    world.until_gone()
