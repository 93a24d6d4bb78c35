"""Runs one after the other in one folder, by a real worker: each finds it as if it were new."""

from __future__ import annotations

import json

import pytest

from hostler.worker.claim.slots import Offer
from worker_world import World

SCRIPT = """
import json, os, sys
from pathlib import Path
n, home = int(sys.argv[2]), os.environ["HOSTLER_DIR"]
found = [
    [root[len(home):], sorted(folders), sorted(name for name in files if "process.json" not in name)]
    for root, folders, files in os.walk(home)
]
params = json.loads(Path(os.environ["HOSTLER_PARAMS"]).read_text())
seen = {"folder": os.stat(".").st_ino, "found": sorted(found), "script": Path(__file__).read_text()}
(Path(os.environ["MARKS"]) / str(n)).write_text(json.dumps({**seen, "params": params}))
print("printed by", n)
if n == 2: Path(__file__).write_text("raise SystemExit('of another run')")
if n == 4: Path("data.csv").write_text("1")
if n == 6: (Path(os.environ["HOSTLER_OUTPUT_DIR"]) / "model").write_text("1")
if n == 8: raise SystemExit(3)
"""


@pytest.fixture
def slow_looks(world: World) -> World:
    """A world in which a process is over before anybody looks after it."""
    world.offer = Offer(cpus=64, memory=1 << 50, slots=1)
    world.quick(poll=20.0)
    return world


def test_later_runs_find_a_used_folder_as_if_new(slow_looks: World) -> None:
    world = slow_looks
    job = world.submit(SCRIPT, runs=[{"n": n} for n in range(10)], retries=0)
    assert world.work() == 0
    seen = [json.loads(world.mark(str(n)).read_text()) for n in range(10)]
    states = [world.state(job, n).state for n in range(10)]
    assert states == ["done"] * 8 + ["failed", "done"]
    assert [one["params"] for one in seen] == [{"n": n} for n in range(10)]
    logs = [world.log(job, n) for n in range(10)]
    assert all(set(log.splitlines()) == {f"printed by {n}"} for n, log in enumerate(logs) if n != 8)
    assert all((one["found"], one["script"]) == (seen[0]["found"], SCRIPT) for one in seen)
    assert len({one["folder"] for one in seen}) < 9, "some had the folder of one before"
    assert list((world.cache / "runs").iterdir()) == []


def test_retried_run_gets_its_checkpoint_in_a_used_folder(slow_looks: World) -> None:
    world = slow_looks
    script = """
import os, sys
from pathlib import Path
n, saved = int(sys.argv[2]), Path(os.environ["HOSTLER_CHECKPOINT_DIR"]) / "saved"
with open(Path(os.environ["MARKS"]) / str(n), "a") as marks: marks.write(str(saved.exists()) + " ")
if n == 1 and not saved.exists():
    saved.write_text("x")
    raise SystemExit(75)
"""
    job = world.submit(script, runs=[{"n": n} for n in range(3)])
    assert world.work() == 0
    assert [world.state(job, n).state for n in range(3)] == ["done"] * 3
    assert [world.mark(str(n)).read_text().split() for n in range(3)] == [
        ["False"],
        ["False", "True"],
        ["False"],
    ]


def test_kept_folders_go_with_their_session(slow_looks: World) -> None:
    world = slow_looks
    world.submit("pass", runs=[{"n": n} for n in range(2)])
    worker = world.worker()
    assert worker.run() == 0
    kept = worker._m.reused._kept
    assert kept and not any(folder.folder.exists() for folder in kept)
