"""Metrics that a script only prints, as its tool does, recognised by a real worker."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from hostler.cli.look import show
from hostler.records import layout
from hostler.records.rows import rows
from hostler.records.run import run_details
from hostler.records.sweep import sweeps
from hostler.records.sweep.summary import ranked
from hostler.spec import space
from hostler.spec.job import Budget, Checkpointing, Job, MetricSource, Objective
from worker_world import World, until

BAR = r"""
import sys, time
for n in range(1, 21):
    for _ in range(3):
        sys.stdout.write(f"\r{5 * n:3}%|{'#' * n}| {n}/20 [00:01<00:02, 5.1it/s, loss={1 / n:.4f}]")
        sys.stdout.flush()
print()
print("epoch 1 | val_loss=0.12")
"""
TOLD = "metrics read from the output: loss"


def test_printed_bar_becomes_a_curve_and_is_said_once(world: World) -> None:
    job = world.submit(BAR)
    world.work()
    assert world.curve(job, "loss") == [(n, round(1 / n, 4)) for n in range(1, 21)]
    assert world.curve(job, "val_loss") == [(1, 0.12)]
    assert world.log(job).count("[hostler] metrics read from the output:") == 1 and TOLD in world.log(job)
    assert world.row(job).metrics["loss"] == 0.05
    found = run_details.read(world.store, world.key(job))
    assert found.recognised == ["loss", "val_loss"] == show.facts(found)["recognised"]
    shown = "\n".join(show._lines(found))
    assert "metrics read from the output: loss, val_loss (turn off: metrics: none)" in shown


def test_metrics_none_recognises_nothing_and_says_nothing(world: World) -> None:
    job = world.submit(BAR, metrics=MetricSource(json_lines=False, tools=False))
    world.work()
    assert world.row(job).metrics == {} and TOLD not in world.log(job)


def test_script_that_logs_by_the_library_has_no_double_points(world: World) -> None:
    script = """
import hostler, time
run = hostler.start()
for n in range(5):
    print(f"epoch {n}: loss={n + 100.0}", flush=True)
    time.sleep(0.1)
    run.log(loss=float(n), step=n)
"""
    job = world.submit(script)
    world.work()
    assert world.curve(job, "loss") == [(n, float(n)) for n in range(5)]
    assert TOLD not in world.log(job)


COUNTS = """
import os, pathlib, time
ckpt, marks = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"]), pathlib.Path(os.environ["MARKS"])
last = ckpt / "n"
n = int(last.read_text()) if last.exists() else 0
while n < 6:
    n += 1
    print(LINE, flush=True)
    last.with_suffix(".new").write_text(str(n)); last.with_suffix(".new").rename(last)
    (marks / f"at-{n}").touch()
    while not (marks / f"go-{n}").exists(): time.sleep(0.01)
    if n == 3 and os.environ["HOSTLER_ATTEMPT"] == "1":
        os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize(
    ("line", "first"), [('f"loss: {1 / n:.4f}"', 0), ('f"epoch {n} | loss={1 / n:.4f}"', 1)]
)
def test_curve_goes_on_from_the_restored_checkpoint_after_a_kill(world: World, line: str, first: int) -> None:
    job = world.submit(COUNTS.replace("LINE", line), checkpoint=Checkpointing(every=0.01), retries=3)
    with world.working():
        for n in range(1, 7):
            until(world.mark(f"at-{n}").exists)
            until(lambda n=n: saved(world, job) == n)
            world.mark(f"go-{n}").touch()
        until(lambda: world.state(job).ended)
    assert world.state(job).attempts == 2
    assert world.curve(job, "loss") == [(first + n, round(1 / (n + 1), 4)) for n in range(6)]
    assert world.log(job).count(TOLD) == 1


BOOSTS = """
import json, os, pathlib, time
ckpt, marks = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"]), pathlib.Path(os.environ["MARKS"])
model = ckpt / "model.json"
done = len(json.loads(model.read_text())["learner"]["iteration_indptr"]) - 1 if model.exists() else 0
for n in range(6 - done):
    text = json.dumps({"learner": {"iteration_indptr": list(range(done + n + 2))}})
    (ckpt / "new").write_text(text); (ckpt / "new").rename(model)
    if done + n == 2 and os.environ["HOSTLER_ATTEMPT"] == "1":
        while not (marks / "go").exists(): time.sleep(0.01)
        os.kill(os.getpid(), 9)
    print(f"[{n}]\\ttrain-logloss:0.{done + n + 1}", flush=True)
"""


def test_round_saved_but_never_printed_shifts_no_other(world: World) -> None:
    job = world.submit(BOOSTS, checkpoint=Checkpointing(every=0.01), retries=3)
    with world.working():
        until(lambda: b"[0, 1, 2, 3]" in newest(world, job))
        world.mark("go").touch()
        until(lambda: world.state(job).ended)
    assert world.state(job).attempts == 2 and "(3 boosting rounds)" in world.log(job)
    assert world.curve(job, "train-logloss") == [(n, (n + 1) / 10) for n in (0, 1, 3, 4, 5)]


def newest(world: World, job: Job) -> bytes:
    for place in world.committed(job):
        return world.store.get(layout.checkpoint_file(job.run_id(0), place.attempt, place.step, 0)).data
    return b""


def saved(world: World, job: Job) -> int:
    for place in world.committed(job):
        key = layout.checkpoint_file(job.run_id(0), place.attempt, place.step, 0)
        return int(world.store.get(key).data)
    return 0


GRADES = """
import sys, time
lr = float(dict(zip(sys.argv[1::2], sys.argv[2::2]))["--lr"])
for n in range(1, STEPS):
    print(f"epoch {n} | val_loss={lr + 1 / n:.4f}", flush=True)
    time.sleep(0.1)
"""


def test_pruner_judges_runs_by_a_recognised_metric(world: World) -> None:
    found: dict[str, Any] = {"method": "asha", "min": 2, "factor": 2, "max": 39, "pause": False}
    job = world.submit(
        GRADES.replace("STEPS", "40"),
        runs=[{"lr": lr} for lr in (0.1, 0.9, 0.8, 0.7)],
        metric="val_loss",
        goal="min",
        objectives=(Objective("val_loss", "min"),),
        prune=found,
        checkpoint=Checkpointing(every=0.05),
    )
    world.work()
    states = [world.state(job, n).state for n in range(4)]
    assert states[0] == "done" and set(states[1:]) & {"pruned", "paused"}
    best = ranked(sweeps.load(world.store, job.name), rows(world.store, [job.name]))[0]
    assert best[1].index == 0 and best[0] == pytest.approx(0.1256, abs=1e-3)


def test_search_learns_from_a_recognised_metric(world: World) -> None:
    made = space.parse({"lr": {"min": 0.0, "max": 1.0}}, method="tpe", runs=3)
    job = world.submit(
        GRADES.replace("STEPS", "3"),
        name="tpe",
        command=(sys.executable, "-u", "train.py"),
        runs=(),
        method="tpe",
        search=space.to_json(made),
        metric="val_loss",
        goal="min",
        objectives=(Objective("val_loss", "min"),),
        budget=Budget(runs=3),
    )
    world.work()
    found = ranked(sweeps.load(world.store, job.name), rows(world.store, [job.name]))
    assert len(found) == 3 and [value for value, _ in found] == sorted(value for value, _ in found)
