"""Scripts that save often, killed early by real signals under real workers: progress is kept."""

from __future__ import annotations

import math
import random
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from killer import RUN, WORKER, farm, keys_of, send, until

from hostler.records.checkpoint import checkpoints
from hostler.records.run import control
from hostler.records.series.logs import LogReader
from hostler.spec.job import Job
from worker_world import World
from worker_world import until as becomes

COUNT = """
import json, os, pathlib, sys, time
folder, style = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"]), sys.argv[1]
def replace(path, text):
    (folder / "new").write_text(text)
    os.replace(folder / "new", path)
def numbers():
    names = [path.name for path in folder.glob("checkpoint-*")]
    return sorted(int(name.split("-")[1].split(".")[0]) for name in names)
if style == "renamed":
    n = int((folder / "last").read_text()) if (folder / "last").exists() else 0
elif style == "pointer":
    n = 0
    if (folder / "latest").exists():
        n = int((folder / (folder / "latest").read_text()).read_text())
elif style == "last and best":
    n = int((folder / "last.pt").read_text()) if (folder / "last.pt").exists() else 0
    assert not n or n - int((folder / "best.pt").read_text()) < 9
elif style == "newest two":
    n = max(numbers(), default=0)
    assert not n or (folder / f"checkpoint-{n}.pt").read_text() == str(n)
elif style == "folders":
    n = max(numbers(), default=0)
    if n:
        assert (folder / f"checkpoint-{n}" / "model").read_text() == str(n)
        assert (folder / f"checkpoint-{n}" / "optimizer").read_text() == str(n)
goes_on = os.environ["HOSTLER_ATTEMPT"] != "1"
print("begins", n, flush=True)
while not goes_on and n < 1000:
    n += 1
    if style == "renamed":
        replace(folder / "last", str(n))
    elif style == "pointer":
        (folder / f"checkpoint-{n}.pt").write_text(str(n))
        replace(folder / "latest", f"checkpoint-{n}.pt")
    elif style == "last and best":
        replace(folder / "last.pt", str(n))
        replace(folder / "best.pt", str(n))
    elif style == "newest two":
        (folder / f"checkpoint-{n}.pt").write_text(str(n))
        for old in numbers()[:-2]: (folder / f"checkpoint-{old}.pt").unlink()
    else:
        (folder / f"checkpoint-{n}").mkdir()
        (folder / f"checkpoint-{n}" / "model").write_text(str(n))
        (folder / f"checkpoint-{n}" / "optimizer").write_text(str(n))
    print("saved", n, flush=True)
    time.sleep(0.3 if style in ("last and best", "newest two") else 0.5)
"""


def begun(text: str) -> list[int]:
    """The numbers that the attempts of a run began from."""
    return [int(line.split()[1]) for line in text.splitlines() if line.startswith("begins ")]


STYLES = ("renamed", "pointer", "folders", "newest two", "last and best")
VICTIMS = (RUN, WORKER)
SETTLE = 2.0


def killed_by_turns() -> list[Any]:
    """Each style with one victim or the other; with both of them in the long dose."""
    pairs = [(n, style, victim) for n, style in enumerate(STYLES) for victim in VICTIMS]
    return [
        pytest.param(style, victim, marks=[pytest.mark.soak] * (VICTIMS[n % 2] != victim))
        for n, style, victim in pairs
    ]


@pytest.mark.parametrize(("style", "victim"), killed_by_turns())
def test_kill_in_ten_seconds_keeps_saves_of_every_half_second(
    style: str, victim: str, tmp_path: Path
) -> None:
    """With the resting time and the `every` of real runs."""
    rng = random.Random(f"{style}{victim}")
    with farm(str(tmp_path / "store"), tmp_path, settle=SETTLE) as made:
        (made.code / "count.py").write_text(COUNT)
        job = made.submit(Job(name="count", command=(sys.executable, "count.py", style)))
        [key] = keys_of(job)
        made.start()

        def log() -> str:
            pieces = LogReader(made.store, key.run).read()
            return b"".join(piece.data for piece in pieces).decode()

        until(lambda: made.processes(RUN), why=made.said)
        time.sleep(rng.uniform(7.0, 9.5))
        send(min(made.processes(victim)), signal.SIGKILL)
        made.finish(job, workers=1)
        [zero, again] = begun(log())
        newest = log().count("saved ")  # or one more, if its line was not printed
        interval = 0.3 if style in ("last and best", "newest two") else 0.5
        lag = 2 if style in ("folders", "newest two") else math.ceil((SETTLE + interval) / interval)
        assert zero == 0 and again >= newest - lag, log()
        assert control.state_of(made.store, key).state == "done"


TIMM = """
import os, pathlib, signal, sys, time
folder, attempt = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"]), int(os.environ["HOSTLER_ATTEMPT"])
if "--resume" in sys.argv:
    print("resumes from", pathlib.Path(sys.argv[sys.argv.index("--resume") + 1]).read_text(), flush=True)
    sys.exit()
assert not list(folder.iterdir()), "not the beginning"
(folder / "args.yaml").write_text("lr: 0.1")
if "first" in sys.argv:
    (folder / "checkpoint-0.pth.tar").write_text("epoch 0")
if attempt > 1:
    print("starts anew", flush=True)
    sys.exit()
time.sleep(2.5)
os.kill(os.getpid(), signal.SIGKILL)
"""
LAST = ("--resume", "{checkpoint_dir}/last.pth.tar")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path / "world")


def test_resume_that_names_a_missing_file_starts_from_the_beginning(world: World) -> None:
    job = world.submit(TIMM, resume=LAST, retries=0)
    world.work()
    log = world.log(job)
    assert world.state(job).state == "done", log
    assert world.committed(job) and "starts anew" in log
    assert "starts from the beginning: no checkpoint has the files that `resume:` names" in log


def test_first_alternative_of_resume_that_fits_is_used(world: World) -> None:
    other = ("--resume", "{checkpoint_dir}/checkpoint-0.pth.tar")
    command = (sys.executable, "-u", "train.py", "first")
    job = world.submit(TIMM, command=command, resume=LAST, resume_else=(other,), retries=0)
    world.work()
    assert world.state(job).state == "done" and "resumes from epoch 0" in world.log(job), world.log(job)


OLDER = """
import os, pathlib, sys, time
folder, marks = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"]), pathlib.Path(os.environ["MARKS"])
if "--resume" in sys.argv:
    print("resumes from", pathlib.Path(sys.argv[-1]).read_text(), flush=True)
    sys.exit()
(folder / "last.pth.tar").write_text("epoch 3")
while not (marks / "go").exists(): time.sleep(0.01)
(folder / "last.pth.tar").unlink()
(folder / "half").write_text("x")
sys.exit(75)
"""


def test_checkpoint_without_the_resume_file_is_passed_over(world: World) -> None:
    job = world.submit(OLDER, resume=LAST)
    with world.working():
        becomes(lambda: world.committed(job))
        world.mark("go").touch()
        becomes(lambda: world.state(job).ended)
    log = world.log(job)
    assert "checkpoint 1-2 is passed over: it has no file that `resume:` names" in log
    assert "goes on from checkpoint 1-1" in log and "resumes from epoch 3" in log


SIGTERM = """
import os, pathlib, signal, sys, time
folder, marks = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"]), pathlib.Path(os.environ["MARKS"])
if (folder / "last").exists():
    print("goes on from", (folder / "last").read_text(), flush=True)
    sys.exit()
def leave(number, frame):
    (folder / "last").write_text("saved on SIGTERM")
    sys.exit(143)
signal.signal(signal.SIGTERM, leave)
(marks / "ready").touch()
time.sleep(60)
"""


def test_save_on_sigterm_with_exit_143_is_kept(world: World) -> None:
    world.quick(settle=30.0)
    job = world.submit(SIGTERM)
    with world.working():
        becomes(lambda: world.mark("ready").exists())
        control.pause(world.store, world.key(job))
        becomes(lambda: world.state(job).state == "paused")
    assert len(checkpoints.committed(world.store, job.run_id(0))) == 1
    control.resume(world.store, world.key(job))
    world.work()
    assert "goes on from saved on SIGTERM" in world.log(job)


def test_exit_143_that_nobody_asked_for_is_not_trusted(world: World) -> None:
    world.quick(settle=30.0)
    script = """
import os, pathlib, sys
folder = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"])
if int(os.environ["HOSTLER_ATTEMPT"]) > 1: sys.exit("there is a checkpoint" if list(folder.iterdir()) else 0)
(folder / "half").write_text("x")
sys.exit(143)
"""
    job = world.submit(script)
    world.work()
    assert world.state(job).state == "done", world.log(job)


FAILS = """
import os, pathlib, sys, time
folder, marks = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"]), pathlib.Path(os.environ["MARKS"])
if int(os.environ["HOSTLER_ATTEMPT"]) > 1:
    print("finds", sorted((path.name, path.read_text()) for path in folder.iterdir()), flush=True)
    sys.exit()
(folder / "model.pt").write_text("whole")
while not (marks / "go").exists(): time.sleep(0.01)
with open(folder / "model.pt", "w") as file:
    file.write("ha")
    file.flush()
    LEAVE
"""


@pytest.mark.parametrize(
    "leave, found",
    [("raise OSError('in the middle of a save')", "whole"), ("file.write('lf'); sys.exit(75)", "half")],
)
def test_half_file_of_a_script_that_fails_is_not_saved(world: World, leave: str, found: str) -> None:
    """One that leaves to be tried again means what it wrote."""
    job = world.submit(FAILS.replace("LEAVE", leave), retries=1)
    with world.working():
        becomes(lambda: world.committed(job))
        world.mark("go").touch()
        becomes(lambda: world.state(job).ended)
    assert f"finds [('model.pt', '{found}')]" in world.log(job), world.log(job)


@pytest.mark.parametrize("leave", ["sys.exit(1)", "raise KeyboardInterrupt"])
def test_save_on_sigterm_with_another_end_is_kept(world: World, leave: str) -> None:
    world.quick(settle=30.0)
    job = world.submit(SIGTERM.replace("sys.exit(143)", leave))
    with world.working():
        becomes(lambda: world.mark("ready").exists())
        control.pause(world.store, world.key(job))
        becomes(lambda: world.state(job).state == "paused")
    assert len(checkpoints.committed(world.store, job.run_id(0))) == 1
