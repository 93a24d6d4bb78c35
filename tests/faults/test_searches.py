"""Searches that learn, by real workers that are killed at random: every trial told, none lost, none twice.

Each writes a history, and is judged by tests/history/checker.py, which knows nothing of hostler."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from killer import Killer, farm, keys_of, often, outcome
from recorder import undisturbed
from schedule import repeatable

from hostler.records.run.log import RunLog
from hostler.records.run.state import fold
from hostler.records.sweep import sweeps
from hostler.records.sweep.journal import Journal
from hostler.spec import space
from hostler.spec.job import Budget, Job, Objective
from hostler.store import Store
from worker_world import World, until

# Knows nothing of hostler but the folder's name. Every seventh configuration cannot be trained.
TRAIN = """
import json, os, sys, time
given = dict(zip(sys.argv[1::2], sys.argv[2::2]))
x, y = float(given["--x"]), float(given["--y"])
path = os.path.join(os.environ["HOSTLER_CHECKPOINT_DIR"], "state.json")
pace = float(os.environ.get("PACE", "1"))
step = json.load(open(path)) if os.path.exists(path) else 0
if int(given["--kind"]) == 6:
    raise ValueError("a kind that cannot be")
while step < 3:
    step += 1
    print(json.dumps({"step": step, "loss": (x - 1) ** 2 + (y + 2) ** 2 + 1 / step}), flush=True)
    time.sleep(0.05 * pace)
    with open(path + ".tmp", "w") as file:
        json.dump(step, file)
    os.replace(path + ".tmp", path)
    time.sleep(0.25 * pace)
"""
PARAMETERS = {
    "x": {"min": -5.0, "max": 5.0},
    "y": {"min": -5.0, "max": 5.0},
    "kind": list(range(7)),
}


def learning(runs: int, **given: Any) -> Job:
    found = space.parse(PARAMETERS, method="tpe", runs=runs)
    return Job(
        name="tpe",
        command=(sys.executable, "train.py"),
        runs=(),
        method="tpe",
        search=space.to_json(found),
        objectives=(Objective("loss", "min"),),
        budget=Budget(runs=runs),
        **given,
    )


def is_over(store: Store, job: Job) -> bool:
    now = sweeps.load(store, job.name)
    if now.count < (job.budget.runs or 0):
        return False
    return all(fold(RunLog(store, key).read_on().entries).ended for key in keys_of(now))


def undisturbed_trials(told: Job, folder: Path) -> dict[str, dict[str, Any]]:
    """Each configuration that was asked for, trained without hostler; one that cannot be trained fails."""
    trials = {key.run: told.params(n) for n, key in enumerate(keys_of(told))}
    bad = {run for run, params in trials.items() if params["kind"] == 6}
    words = {
        run: [word for name, value in params.items() for word in (f"--{name}", str(value))]
        for run, params in trials.items()
        if run not in bad
    }
    failed: dict[str, Any] = {"state": "failed", "curves": {}, "weights": {}}
    return {**undisturbed(TRAIN, folder, words), **dict.fromkeys(bad, failed)}


def rage(url: str, folder: Path, *, runs: int, workers: int, seconds: float, seed: int | None = None) -> None:
    with farm(url, folder) as made:
        (made.code / "train.py").write_text(TRAIN)
        job = made.submit(learning(runs, **{**often(), "retries": 0}))
        killer = Killer(made, repeatable(seed), workers)

        def more() -> bool:
            killer.let_go_on()
            return bool(killer.frozen) or not is_over(made.store, job)

        with made.record(job) as history:
            made.tend(workers)
            killer.rage(seconds)
            made.finish(job, workers=workers, seconds=120 + 3 * runs, meanwhile=more)
            made.start().wait(60)
        told = sweeps.load(made.store, job.name)
        history.expect(undisturbed_trials(told, folder / "undisturbed"))
        assert history.close([key.run for key in keys_of(told)], made.cache, folder / "tmp") == []
        assert told.count == len(Journal(made.store, job.name).read_on()) == runs
        assert len({key.run for key in keys_of(told)}) == runs
        attempts = 0
        for n, key in enumerate(keys_of(told)):
            found = outcome(made.store, key)
            attempts += found.state.attempts
            params = told.params(n)
            if params["kind"] == 6:
                assert found.state.state == "failed", (key.run, found.end)
                continue
            assert found.state.state == "done", (key.run, found.end)
            loss = (params["x"] - 1) ** 2 + (params["y"] + 2) ** 2 + 1 / 3
            assert found.end["metrics"]["loss"]["last"] == pytest.approx(loss)  # type: ignore[index]
        assert attempts > runs, f"the killer hit nobody: {killer.deeds}"


def test_every_trial_is_told_once_however_often_workers_are_killed(tmp_path: Path) -> None:
    rage(str(tmp_path / "store"), tmp_path, runs=14, workers=3, seconds=6)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_two_hundred_trials_by_eight_workers(tmp_path: Path) -> None:
    rage(str(tmp_path / "store"), tmp_path, runs=200, workers=8, seconds=120, seed=8)


EPOCHS = """
import json, os, pathlib, sys, time
x = float(sys.argv[sys.argv.index("--x") + 1])
path = pathlib.Path(os.environ["HOSTLER_CHECKPOINT_DIR"]) / "state.json"
first = json.loads(path.read_text()) + 1 if path.exists() else 1
for epoch in range(first, 10):
    with open(os.environ["MARKS"] + "/epochs", "a") as file:
        file.write(f"{x} {epoch}\\n")
    path.with_name("tmp").write_text(json.dumps(epoch))
    path.with_name("tmp").replace(path)
    print(json.dumps({"step": epoch, "acc": x * (1 - 0.5 ** epoch)}), flush=True)
    time.sleep(3 if epoch in (1, 3) else 0.1)  # where it is judged: who is set aside does not wait so long
"""
HEIGHTS = [5.0, 8.0, 1.0, 0.5, 7.0, 2.0, 6.0, 3.0, 4.0]


def halving(world: World, **prune: Any) -> Job:
    return world.submit(
        EPOCHS,
        name="asha",
        runs=[{"x": x} for x in HEIGHTS],
        objectives=(Objective("acc", "max"),),
        prune={"method": "asha", "max": 9, **prune},
        retries=0,
    )


def test_halving_saves_epochs_and_paused_runs_resume_from_checkpoints(world: World) -> None:
    job = halving(world)
    with world.working() as one:
        until(lambda: world.state(job, 1).state == "paused", 200)  # the second to be judged has to wait
        with world.working() as two:
            assert one is not two
            until(lambda: world.state(job, 1).state == "done", 200)
    states = [world.state(job, n).state for n in range(9)]
    assert states.count("done") == 1 and states[1] == "done"
    assert set(states) == {"done", "paused"}
    trained = world.mark("epochs").read_text().splitlines()
    assert len(trained) <= 0.4 * 81
    assert trained.count("8.0 9") == 1
    resumed = [e for e in world.entries(job, 1) if e["kind"] == "claim" and e.get("until")]
    assert resumed, "the best was not the first, so it has waited"
    assert world.ended(job, 1)["restored"], "and went on from its checkpoint"
    assert world.curve(job, "acc", 1) == [(e, 8.0 * (1 - 0.5**e)) for e in range(1, 10)]
    for n in range(9):
        if states[n] == "paused":
            assert world.committed(job, n), f"run {n} keeps its checkpoint"
            assert world.entries(job, n)[-1]["rung"] in (1, 3), "where it was judged"


def test_workers_leave_when_what_is_paused_will_not_go_on(world: World) -> None:
    job = halving(world)
    assert world.work() == 0
    assert [world.state(job, n).state for n in range(9)].count("done") == 1
    assert "8 paused" in world.said[-1]


def test_without_pause_who_falls_behind_ends_pruned(world: World) -> None:
    """The later one starts, the worse it is: which of them that is, is the worker's choice."""
    script = """
import json, os, time
with open(os.environ["MARKS"] + "/started", "a+") as file:
    file.write(os.environ["HOSTLER_RUN"] + "\\n")
    file.seek(0)
    height = -len(file.readlines())
for epoch in range(1, 30):
    print(json.dumps({"step": epoch, "acc": height}), flush=True)
    time.sleep(0.1)
"""
    job = world.submit(
        script,
        runs=[{"x": x} for x in (3.0, 2.0, 1.0)],
        objectives=(Objective("acc", "max"),),
        prune={"method": "asha", "pause": False, "min": 2, "max": 29},
        retries=0,
    )
    assert world.work() == 0
    order = [int(run[:7]) for run in world.mark("started").read_text().split()]
    assert [world.state(job, n).state for n in order] == ["done", "done", "pruned"]
    end = world.ended(job, order[2])
    assert end["why"] == "prune" and "failure" not in end
    assert "ends at step" in world.log(job, order[2])


def test_patience_ends_a_run_that_does_not_become_better(world: World) -> None:
    script = """
import json, time
for epoch in range(1, 100):
    print(json.dumps({"step": epoch, "loss": max(0.5, 1 - epoch / 4)}), flush=True)
    time.sleep(0.05)
"""
    job = world.submit(
        script, metric="loss", goal="min", prune={"method": "patience", "patience": 3}, retries=0
    )
    assert world.work() == 0
    assert world.state(job).state == "pruned"
    assert world.curve(job, "loss")[-1][0] < 60


def test_script_that_finishes_before_it_is_judged_is_done(world: World) -> None:
    world.quick(poll=2.0)  # the worker reads what it printed when it has gone
    script = 'import json\nfor e in range(1, 5): print(json.dumps({"step": e, "acc": 0.1}))'
    runs = [{"n": n} for n in range(4)]
    job = world.submit(
        script, runs=runs, objectives=(Objective("acc", "max"),), prune={"method": "asha"}, retries=0
    )
    assert world.work() == 0
    assert [world.state(job, n).state for n in range(4)] == ["done"] * 4


def test_failure_counts_as_a_failure_whatever_the_pruner_decides(world: World) -> None:
    script = 'import json\nprint(json.dumps({"step": 1, "acc": 0.1}), flush=True)\nraise ValueError("no")'
    runs = [{"n": n} for n in range(3)]
    job = world.submit(
        script, runs=runs, objectives=(Objective("acc", "max"),), prune={"method": "asha"}, retries=0
    )
    assert world.work() == 0
    assert [world.state(job, n).state for n in range(3)] == ["failed"] * 3
    assert json.dumps(world.ended(job, 0)["failure"]).count("no")
