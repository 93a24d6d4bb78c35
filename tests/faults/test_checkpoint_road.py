"""Checkpoints of a script that knows nothing of hostler, saved and brought back by real workers."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from hostler.records import layout
from hostler.records.body import decode, encode
from hostler.records.checkpoint import checkpoints
from hostler.records.run import control
from hostler.spec.job import Checkpointing, Job
from worker_world import World, until

HEAD = """
import json, os, pathlib, sys, time
ckpt, marks = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"]), pathlib.Path(os.environ["MARKS"])
attempt = int(os.environ["HOSTLER_ATTEMPT"])
def commits():
    return int((marks / "commits").read_text() or 0) if (marks / "commits").exists() else 0
"""
# Saves a number, waits until the test has seen it committed, goes on.
STEPS = (
    HEAD
    + """
last = ckpt / "state.json"
step = json.loads(last.read_text())["step"] if last.exists() else 0
(marks / f"began-{attempt}").write_text(str(step))
while step < 6:
    step += 1
    print(json.dumps({"step": step, "loss": 1 / step}), flush=True)
    last.with_suffix(".new").write_text(json.dumps({"step": step})); last.with_suffix(".new").rename(last)
    (marks / "at").write_text(str(step))
    while not (marks / f"go-{step}").exists(): time.sleep(0.01)
    if step == 3 and attempt == 1:
        os._exit(75)
"""
)
OFTEN = Checkpointing(every=0.01)


def saved_step(world: World, job: Job) -> int:
    """The step in the newest committed state.json."""
    for place in world.committed(job):
        data = world.store.get(layout.checkpoint_file(job.run_id(0), place.attempt, place.step, 0)).data
        return int(json.loads(data)["step"])
    return 0


def lead(world: World, job: Job, steps: range) -> None:
    """Let the script take a step once the one before it is committed."""
    for step in steps:
        until(lambda step=step: saved_step(world, job) == step)
        world.mark(f"go-{step}").touch()


def test_run_continues_from_its_checkpoint_and_shows_every_step_once(world: World) -> None:
    job = world.submit(STEPS, checkpoint=OFTEN)
    with world.working():
        lead(world, job, range(1, 7))
        until(lambda: world.state(job).ended)
    assert world.state(job).state == "done" and world.state(job).attempts == 2
    assert world.mark("began-3").read_text() == "3"
    assert world.curve(job, "loss") == [(n, 1 / n) for n in range(1, 7)]
    end = world.ended(job)
    assert end["metrics"]["loss"]["max"] == 1.0 and end["metrics"]["loss"]["last"] == 1 / 6
    assert len(world.committed(job)) == 2, "keep is 2"


def test_what_is_marked_kept_is_never_retired(world: World) -> None:
    job = world.submit(STEPS, checkpoint=Checkpointing(every=0.01, keep=1, keep_every=0.0001))
    with world.working():
        lead(world, job, range(1, 7))
        until(lambda: world.state(job).ended)
    records = [checkpoints.read(world.store, job.run_id(0), place).record for place in world.committed(job)]
    assert len(records) >= 6 and all(record.get("kept") for record in records)


TREE = (
    HEAD
    + r"""
if attempt == 1:
    (ckpt / "sub" / "deep").mkdir(parents=True)
    (ckpt / "epoch3").write_text("three"); os.chmod(ckpt / "epoch3", 0o640)
    (ckpt / "sub" / "deep" / "x").write_bytes(bytes(range(256)))
    (ckpt / "last").symlink_to("epoch3")
    (ckpt / "abs").symlink_to(ckpt / "sub" / "deep" / "x")
    (ckpt / "odd \n'\"; name \u00e9").write_text("odd")
    (ckpt / "tool.sh").write_text("x"); os.chmod(ckpt / "tool.sh", 0o755)
    os.utime(ckpt / "epoch3", (1e9, 1e9))
    sys.exit(75)
assert os.readlink(ckpt / "last") == "epoch3" and (ckpt / "last").read_text() == "three"
assert (ckpt / "abs").read_bytes() == bytes(range(256)) and not os.path.isabs(os.readlink(ckpt / "abs"))
assert (ckpt / "odd \n'\"; name \u00e9").read_text() == "odd"
assert oct((ckpt / "epoch3").stat().st_mode)[-3:] == "640", "mode"
assert oct((ckpt / "tool.sh").stat().st_mode)[-3:] == "755"
assert (ckpt / "epoch3").stat().st_mtime == 1e9, "the newest file is found by its time"
"""
)


def test_folders_links_modes_times_and_odd_names_come_back(world: World) -> None:
    job = world.submit(TREE)
    world.work()
    assert world.state(job).state == "done", world.log(job)


POISON = (
    HEAD
    + """
if attempt == 1:
    (ckpt / "n").write_text("1"); (marks / "at").write_text("1")
    while not (marks / "go").exists(): time.sleep(0.01)
    (ckpt / "n").write_text("2"); sys.exit(75)
n = int((ckpt / "n").read_text())
with open(marks / "from", "a") as f: f.write(str(n))
if n == 2: raise ValueError("NaN in the weights")
"""
)


def test_failure_on_a_checkpoint_falls_back_to_the_one_before(world: World) -> None:
    job = world.submit(POISON, checkpoint=OFTEN)
    with world.working():
        until(lambda: len(world.committed(job)) == 1)
        world.mark("go").touch()
        until(lambda: world.state(job).ended)
    assert world.state(job).state == "done" and world.mark("from").read_text() == "21"
    assert "checkpoint 1-2 is passed over: an attempt failed on it; using 1-1" in world.log(job)


TWO = (
    HEAD
    + """
if attempt == 1:
    for n in "12":
        (ckpt / "n").write_text(n * 1000); (ckpt / "other").write_text("o")
        if n == "1":
            while not (marks / "go").exists(): time.sleep(0.01)
    while True: time.sleep(0.01)  # until its worker leaves
(marks / "from").write_text((ckpt / "n").read_text()[:1])
"""
)


def two_checkpoints(world: World) -> Job:
    """A queued run with two checkpoints of attempt 1, 'n' being file 0 of each."""
    job = world.submit(TWO, checkpoint=OFTEN)
    with world.working():
        until(lambda: len(world.committed(job)) == 1)
        world.mark("go").touch()
        until(lambda: len(world.committed(job)) == 2)
    assert world.state(job).state == "queued" and len(world.committed(job)) == 2
    return job


def hurt(world: World, job: Job, how: str, step: int) -> None:
    file = layout.checkpoint_file(job.run_id(0), 1, step, 0)
    commit = layout.commit(job.run_id(0), 1, step)
    data = world.store.get(file).data
    if how == "cut":
        world.store.put(file, data[:10])
    elif how == "flipped":
        world.store.put(file, data[:10] + bytes([data[10] ^ 1]) + data[11:])
    elif how == "missing":
        world.store.delete(file)
    elif how == "no-record":
        world.store.put(commit, b"{")
    else:
        record = decode(world.store.get(commit).data, commit)
        world.store.put(commit, encode({**record, "format": 99}))


HURTS = {
    "cut": "n is not what was saved",
    "flipped": "n is not what was saved",
    "missing": "a file is missing",
    "no-record": "not a hostler record",
    "newer": "newer hostler",
}


@pytest.mark.parametrize("how", HURTS)
def test_damaged_checkpoint_is_named_and_the_one_before_it_used(world: World, how: str) -> None:
    job = two_checkpoints(world)
    hurt(world, job, how, 2)
    world.work()
    assert world.state(job).state == "done" and world.mark("from").read_text() == "1"
    said = next(line for line in world.log(job).splitlines() if "1-2" in line)
    assert HURTS[how] in said and "the one before it is used" in said


def test_run_whose_checkpoints_are_all_damaged_fails_without_starting_over(world: World) -> None:
    job = two_checkpoints(world)
    hurt(world, job, "cut", 1)
    hurt(world, job, "newer", 2)
    world.work()
    state = world.state(job)
    assert state.state == "failed" and state.attempts == 2 and not world.mark("from").exists()
    assert (
        state.failure and state.failure["kind"] == "damaged" and "retry --fresh" in state.failure["message"]
    )
    control.retry(world.store, world.key(job), fresh=True)
    world.mark("from").parent.joinpath("go").touch()
    world.work()
    assert "goes on" not in world.log(job).rpartition("damaged")[2], "fresh: from the beginning"


def test_checkpoint_half_written_at_the_kill_is_not_restored(world: World) -> None:
    world.quick(settle=30.0)
    script = (
        HEAD
        + """
if attempt > 1: sys.exit("there is a checkpoint" if list(ckpt.iterdir()) else 0)
(ckpt / "half").write_text("x")
os.kill(os.getpid(), 9)
"""
    )
    job = world.submit(script)
    world.work()
    assert world.state(job).state == "done"
    assert "not saved: it may have changed when the process died" in world.log(job)


def test_outputs_are_kept_by_glob_by_folder_and_from_output(world: World) -> None:
    script = """
import os, pathlib
pathlib.Path(os.environ["HOSTLER_OUTPUT_DIR"], "sub").mkdir()
pathlib.Path(os.environ["HOSTLER_OUTPUT_DIR"], "sub", "o.txt").write_text("o")
pathlib.Path("results/a").mkdir(parents=True)
pathlib.Path("results/a/r.txt").write_text("r")
for name in ("m1.pkl", "m2.pkl", "not.txt"): pathlib.Path(name).write_text(name)
"""
    job = world.submit(script, outputs=("results/", "*.pkl", "absent/"), collect=False)
    world.work()
    key = layout.output_commit(job.run_id(0), 1)
    rows = decode(world.store.get(key).data, key)["files"]
    assert {row["name"] for row in rows} == {"sub/o.txt", "results/a/r.txt", "m1.pkl", "m2.pkl"}
    for row in rows:
        data = world.store.get(layout.output_file(job.run_id(0), 1, row["n"])).data
        assert len(data) == row["size"] and data.decode() in ("o", "r", "m1.pkl", "m2.pkl")


def test_run_starts_in_its_own_copy_and_leaves_project_clean(world: World) -> None:
    job = world.submit("open('here', 'w').write('x')", outputs=("here",))
    world.work()
    assert world.state(job).state == "done"
    assert sorted(os.listdir(world.root / "project")) == ["train.py"]
    assert not list(Path(world.cache / "code").rglob("here"))
