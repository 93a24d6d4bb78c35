"""A worker that is killed together with its script: the next one on the machine delivers what they left."""

from __future__ import annotations

import random
import signal
import sys
import time
from pathlib import Path

import pytest
from killer import RUN, SUPERVISOR, WORKER, Farm, farm, keys_of, outcome, send, until

from hostler.records.run.log import RunKey
from hostler.records.series.logs import LogReader
from hostler.spec.job import Job

# Saves every 0.3 to 0.5 s, and says with which number it begins. Each number is also written outside of the
# run, after its save.
COUNT = """
import json, os, pathlib, random, shutil, sys, time
folder, style = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"]), sys.argv[1]
marks = pathlib.Path(sys.argv[2])
FILL = "x" * 100_000
def load(path):
    number, fill = path.read_text().split(" ")
    assert fill == FILL, "torn"
    return int(number)
def numbers(): return sorted(int(path.stem.split("-")[1]) for path in folder.glob("checkpoint-*"))
n = 0
if style == "renamed" and (folder / "last.pt").exists():
    n = load(folder / "last.pt")
elif style != "renamed" and numbers():
    n = numbers()[-1]
    if style == "folders":
        assert load(folder / f"checkpoint-{n}/model") == load(folder / f"checkpoint-{n}/optimizer") == n
    else:
        assert load(folder / f"checkpoint-{n}.pt") == n
print("begins", n, flush=True)
while not (marks / "enough").exists():
    n += 1
    print(json.dumps({"step": n, "square": n * n}), flush=True)
    if style == "renamed":
        (folder / "last.pt.new").write_text(f"{n} {FILL}")
        os.replace(folder / "last.pt.new", folder / "last.pt")
    elif style == "folders":
        (folder / f"checkpoint-{n}").mkdir(exist_ok=True)
        (folder / f"checkpoint-{n}" / "model").write_text(f"{n} {FILL}")
        (folder / f"checkpoint-{n}" / "optimizer").write_text(f"{n} {FILL}")
    else:
        (folder / f"checkpoint-{n}.pt").write_text(f"{n} {FILL}")
        for old in numbers()[:-2]:
            (folder / f"checkpoint-{old}.pt").unlink()
    mark = marks / os.environ["HOSTLER_RUN"]
    mark.with_suffix(".new").write_text(str(n))
    os.replace(mark.with_suffix(".new"), mark)
    time.sleep(random.uniform(0.3, 0.5))
"""
LAG = {
    "folders": 1,
    "newest two": 1,
    "renamed": 6,
}  # saves that may be lost: what is not known to be complete


def log_of(made: Farm, key: RunKey) -> str:
    return b"".join(piece.data for piece in LogReader(made.store, key.run).read()).decode()


def begun(made: Farm, key: RunKey) -> list[int]:
    """The numbers that the attempts of a run began from."""
    return [int(line.split()[1]) for line in log_of(made, key).splitlines() if line.startswith("begins ")]


def kill_together(made: Farm) -> None:
    """The worker, the supervisor and the script, at one moment."""
    for kind in (WORKER, SUPERVISOR, RUN):
        for pid in made.processes(kind):
            send(pid, signal.SIGKILL)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("style", sorted(LAG))
def test_script_killed_with_its_worker_goes_on_from_its_newest(style: str, tmp_path: Path) -> None:
    """With the resting time and the `every` of real runs: two kills, the second of a resumed attempt."""
    rng = random.Random(style)
    with farm(str(tmp_path / "store"), tmp_path, settle=2.0) as made:
        (made.code / "count.py").write_text(COUNT)
        command = (sys.executable, "count.py", style, str(tmp_path))
        job = made.submit(Job(name="count", command=command, retries=0))
        [key] = keys_of(job)
        made.start()
        saved: list[int] = []
        for kill in range(2):
            until(lambda: len(begun(made, key)) == kill + 1, why=made.said)  # noqa: B023
            time.sleep(rng.uniform(4.5, 6.0))
            kill_together(made)
            saved.append(int((tmp_path / key.run).read_text()))
        (tmp_path / "enough").touch()
        made.finish(job, workers=1)
        found, numbers = outcome(made.store, key), begun(made, key)
        assert len(numbers) == 3 and found.state.state == "done", log_of(made, key)
        for number, newest in zip(numbers[1:], saved, strict=True):
            assert newest - LAG[style] <= number <= newest, (numbers, saved, log_of(made, key))
        points = found.points["square"]
        assert len(points) >= numbers[-1] and points == [(n, float(n * n)) for n in range(1, len(points) + 1)]


@pytest.mark.timeout(300)
def test_living_worker_delivers_before_it_takes_a_lost_run(tmp_path: Path) -> None:
    """The parent is killed as well: nobody starts another worker in its place."""
    with farm(str(tmp_path / "store"), tmp_path, settle=2.0) as made:
        (made.code / "count.py").write_text(COUNT)
        command = (sys.executable, "count.py", "folders", str(tmp_path))
        job = made.submit(Job(name="count", command=command, runs=({}, {}), retries=0))
        made.start("--slots", "1")
        until(lambda: any(begun(made, key) for key in keys_of(job)), why=made.said)
        victims = set(made.processes())
        [key] = [key for key in keys_of(job) if begun(made, key)]
        made.start("--slots", "1")
        until(lambda: all(begun(made, key) for key in keys_of(job)), why=made.said)
        time.sleep(4.0)
        for pid in victims:
            send(pid, signal.SIGKILL)
        newest = int((tmp_path / key.run).read_text())
        (tmp_path / "enough").touch()
        made.finish(job, workers=1)
        [zero, again] = begun(made, key)
        assert zero == 0 and newest - LAG["folders"] <= again <= newest, log_of(made, key)
        points = outcome(made.store, key).points["square"]
        assert len(points) >= again and points == [(n, float(n * n)) for n in range(1, len(points) + 1)]
