"""Functions called elsewhere by `hostler.Executor`, in real processes, as a program would."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import servers
from hostler.records.launch import launches
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
def placed(first, /, *more):
    return first, more
def forever(place):
    pathlib.Path(place).touch()
    time.sleep(600)
"""
ALL = """
import asyncio, concurrent.futures, json
import statistics
import hostler
from train import letters, placed, thing, train

async def awaited(job):
    return await job

if __name__ == "__main__":
    with hostler.Executor() as pool:
        jobs = pool.map(train, [0.5, 2, 3, 0.5], [1, 4, 1, 1])
        large, odd = pool.submit(letters, count=70_000), pool.submit(thing)
        too_large = pool.submit(letters, 200_000)
        unnamed = pool.submit(lambda x: x + 1, 1)
        by_place, installed = pool.submit(placed, 1, 2, 3), pool.submit(statistics.mean, [1, 3])
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
            "placed": by_place.result(),
            "installed": installed.result(),
            "unnamed": [unnamed.wait(60) is unnamed, unnamed.done(), unnamed.result()],
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
        job.result(timeout=60)
    except concurrent.futures.CancelledError:
        print("cancelled", job.cancelled())
"""
KILLED = """
import os, pathlib, signal, time
import hostler, hostler.executor
def once(place):
    if os.environ["HOSTLER_ATTEMPT"] == "1":
        pathlib.Path(place).touch()
        time.sleep(600)
    return "again"
if __name__ == "__main__":
    hostler.executor.ALONE = 1.0
    with hostler.Executor() as pool:
        job = pool.submit(once, "PLACE")
        while not pathlib.Path("PLACE").exists():
            time.sleep(0.1)
        for place in pathlib.Path("/proc").glob("[0-9]*/cmdline"):  # workers of this store alone
            try:
                words = place.read_bytes().decode().split(chr(0))
            except OSError:
                continue
            if "hostler.worker" in words and pool.store.url in words:
                os.kill(int(place.parent.name), signal.SIGKILL)
        print(job.result(timeout=60))
"""
EXACT = """
import hashlib, os, signal
import hostler
class Weights:
    value = "begun"
    def state_dict(self):
        return {"value": self.value}
    def load_state_dict(self, state):
        self.value = state["value"]
def train(steps):
    weights, seen = Weights(), []
    with hostler.start(save_every="1 steps") as run:
        run.track(weights=weights)
        for step in run.steps(steps):
            seen.append(step)
            weights.value = hashlib.sha256(f"{weights.value} {step}".encode()).hexdigest()
            if run.attempt == 1 and step == 3:
                os.kill(os.getpid(), signal.SIGKILL)
            run.save(wait=True)
        return seen, weights.value
if __name__ == "__main__":
    with hostler.Executor() as pool:
        print(*pool.submit(train, 6).result())
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


def program(
    folder: Path, text: str, *words: str, first: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    """`first`: a folder at the front of PATH. `more`: variables."""
    (folder / "go.py").write_text(text)
    hidden = {"HOSTLER_STORE", "HOSTLER_DIR"}
    environ = {name: value for name, value in os.environ.items() if name not in hidden}
    environ |= {
        "HOSTLER_CACHE": str(folder.parent / "cache"),
        "PYTHONPATH": str(SOURCE),
        "HOSTLER_RESULT_MAX": "150kB",
        "PATH": f"{first or folder}:{os.environ['PATH']}",
        **more,
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
    assert "letters() returned at least 200,002 bytes, and 150,000 are kept at most" in said["too large"]
    assert said["placed"] == [1, [2, 3]] and said["installed"] == 2
    assert said["unnamed"] == [True, True, 2]
    [killed] = [row for row in runs(folder) if row.params.get("lr") == 2]
    assert (killed.state, killed.attempt) == ("done", 2)


def test_same_call_in_another_process_finds_its_result(folder: Path) -> None:
    first = program(folder, TWICE)
    second = program(folder, TWICE)
    assert first.stdout == second.stdout == "[0.25, 0.5]\n"
    assert "2 calls, 2 new" in first.stderr and "2 calls, 0 new" in second.stderr
    (folder / "earlier.py").write_text(TWICE)  # programs that call are not code of the function
    assert "2 calls, 0 new" in program(folder, TWICE + "# more\n").stderr
    assert [row.attempt for row in runs(folder)] == [1, 1]
    assert "2 calls, 2 new" in program(folder, TWICE, "again").stderr
    (folder / "train.py").write_text(TRAIN + "\n# other code\n")
    changed = program(folder, TWICE)
    assert "2 calls, 2 new" in changed.stderr
    assert "other code than of earlier calls: train.py changed\n" in changed.stderr
    assert [row.state for row in runs(folder)] == ["done"] * 6


WHOLE = """
import hostler
def square(x):
    if x < 0:
        raise ValueError(x)
    return x * x
if __name__ == "__main__":
    with hostler.Executor() as pool:
        print(*[job.result() for job in pool.map(square, VALUES)])
"""


def test_longer_list_in_one_program_runs_only_what_is_new(folder: Path) -> None:
    assert program(folder, WHOLE.replace("VALUES", "[2, 3]")).stdout == "4 9\n"
    longer = program(folder, WHOLE.replace("VALUES", "[\n            2, 3, 4]"))
    assert longer.stdout == "4 9 16\n" and "3 calls, 1 new" in longer.stderr
    other = program(folder, WHOLE.replace("VALUES", "[2, 3]").replace("x * x", "x ** 3"))
    assert other.stdout == "8 27\n" and "2 calls, 2 new" in other.stderr


HALTED = """
import hostler, pathlib
def tried(x):
    if not pathlib.Path("PLACE").exists():
        try:
            {}["data"]
        except KeyError as error:
            raise OSError("no data yet") from error
    return x
if __name__ == "__main__":
    with hostler.Executor(retries=0, limits={"failures": 2}) as pool:
        jobs = pool.map(tried, range(4))
        errors = [job.exception() for job in jobs]
        print(*[error.message if error else job.result() for job, error in zip(jobs, errors)], sep="\\n")
        if errors[0]:
            print(errors[0].traceback)
"""


def test_calls_left_after_equal_errors_end_and_are_tried_again(folder: Path) -> None:
    text = HALTED.replace("PLACE", str(folder.parent / "data"))
    first, second, third, fourth, *trace = program(folder, text).stdout.splitlines()
    assert first == second and first.startswith("tried: OSError: no data yet (go.py:")
    assert third == fourth and "not carried out, as tried-" in third
    assert "is halted: the same error 2 times in a row: OSError: no data yet" in third
    causes = [line for line in trace if line.startswith(("KeyError", "OSError", "The above"))]
    link = "The above exception was the direct cause of the following exception:"
    assert causes == ["KeyError: 'data'", link, "OSError: no data yet"]
    (folder.parent / "data").touch()
    assert program(folder, text).stdout == "0\n1\n2\n3\n"
    assert [row.state for row in runs(folder)] == ["done"] * 4


def test_calls_here_run_by_the_python_of_their_program(folder: Path) -> None:
    other = folder.parent / "other"
    other.mkdir()
    (other / "python").write_text("#!/bin/sh\nexit 9\n")
    (other / "python").chmod(0o755)
    text = WHOLE.replace("x * x", "__import__('sys').prefix").replace("VALUES", "[2]")
    assert program(folder, text, first=str(other)).stdout == f"{sys.prefix}\n"


def test_cancelled_job_stops_its_run(folder: Path) -> None:
    place = str(folder.parent / "begun")
    assert program(folder, CANCELLED.replace("PLACE", place)).stdout == "cancelled True\n"
    [row] = runs(folder)
    assert row.state == "stopped"


def test_call_whose_workers_are_killed_is_taken_up_again(folder: Path) -> None:
    text = KILLED.replace("PLACE", str(folder.parent / "begun"))
    assert program(folder, text, HOSTLER_BEAT="0.5", HOSTLER_LEASE="4").stdout == "again\n"
    [row] = runs(folder)
    assert (row.state, row.attempt) == ("done", 2)


def test_killed_call_goes_on_at_its_step_with_its_weights(folder: Path) -> None:
    weights = "begun"
    for step in range(6):
        weights = hashlib.sha256(f"{weights} {step}".encode()).hexdigest()
    assert program(folder, EXACT).stdout == f"[3, 4, 5] {weights}\n"
    assert [row.attempt for row in runs(folder)] == [2]


def test_program_that_does_not_wait_leaves_its_runs(folder: Path) -> None:
    program(folder, AT_ONCE)
    [row] = runs(folder)
    assert row.params == {"lr": 0.5}
    assert json.loads(program(folder, TWICE).stdout) == [0.25, 0.5]


PRICED = """
fleets:
  desk: {backend: local, workers: 1, slots: 1, price: 36}
"""
REFUSED = """
import hostler
from train import train
if __name__ == "__main__":
    with hostler.Executor(on="desk", budget={"cost": 0.001}) as pool:
        print(*[job.exception(timeout=30) for job in pool.map(train, [0.25, 0.5])], sep="\\n")
"""
SPREAD = """
import pathlib, time
import hostler
def held(place):
    pathlib.Path(place).touch()
    while not pathlib.Path("PLACE").exists():
        time.sleep(0.05)
    return "held"
if __name__ == "__main__":
    with hostler.Executor(on="desk", budget={"cost": 5}) as pool:
        first = pool.submit(held, "PLACE-1")
        while not pathlib.Path("PLACE-1").exists():
            time.sleep(0.1)
        second = pool.submit(held, "PLACE-2")
        while second.key is None:
            time.sleep(0.1)
        pool._submit_new()  # it is over once that has started what it would start
        assert not second.done(), second.exception()
        pathlib.Path("PLACE").touch()
        assert first.result() == second.result() == "held"
    print(pool.store.url)
"""


def left_running(folder: Path) -> list[str]:
    lines = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True).stdout.splitlines()
    return [line for line in lines if "hostler.worker" in line and str(folder) in line]


def test_calls_beyond_their_budget_say_why_and_leave_nothing(folder: Path) -> None:
    (folder / "hostler.yaml").write_text(PRICED)
    first, second = program(folder, REFUSED).stdout.splitlines()
    assert first == second and first.startswith("what is left of the budget of train-")
    assert ", 0.001, is less than 3m 45s of desk, which costs 36 an hour" in first
    assert not runs(folder) and not left_running(folder)


def test_later_call_uses_the_launch_that_has_the_budget(folder: Path) -> None:
    (folder / "hostler.yaml").write_text(PRICED)
    program(folder, SPREAD.replace("PLACE", str(folder.parent / "held")))
    found = runs(folder)
    assert [row.state for row in found] == ["done", "done"]
    assert len(launches.of_fleet(open_store(str(folder / ".hostler")), "desk")) == 1


THEIRS = """
import json, sys
from train import train
BLOCK
print(json.dumps(found))
"""


def test_submitit_script_and_its_rewriting_bring_the_same(folder: Path) -> None:
    """The two blocks of the page, the first by the real submitit, each on this machine."""
    servers.library("submitit")
    (folder / "train.py").write_text("def train(lr):\n    return {'acc': 1 - lr}\n")
    page = (SOURCE.parent / "docs" / "coming-from.md").read_text().split("## submitit")[1]
    theirs, settings, ours, *_ = (
        text.split("```")[0] for text in re.split(r"```(?:python|yaml)\n", page)[1:]
    )
    here = {"backend: slurm, partition: gpu, time: 8h, workers: 16": "backend: local, workers: 2"}
    here |= {"resources: {gpus: 1}\n": "", 'folder="logs"': 'folder="logs", cluster="local"'}
    here |= {", gpus_per_node=1": "", "print([job": "found = ([job"}
    for word, instead in here.items():
        assert word in theirs + settings + ours
        theirs, settings, ours = (text.replace(word, instead) for text in (theirs, settings, ours))
    (folder / "hostler.yaml").write_text(settings)
    bodies = [THEIRS.replace("BLOCK", text) for text in (theirs, ours)]
    answers = [json.loads(program(folder, text).stdout) for text in bodies]
    assert answers[0] == answers[1] == [{"acc": 0.9}, {"acc": 0.99}, {"acc": 0.999}]
