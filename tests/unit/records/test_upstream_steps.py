"""Inputs from a run that a person stopped, and from one of its checkpoints."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostler.errors import MissingError, UsageError
from hostler.records import garbage
from hostler.records.checkpoint import checkpoints
from hostler.records.checkpoint.checkpoints import Place
from hostler.records.rows import rows
from hostler.records.run import control, upstream
from hostler.records.run.attempt import claim
from hostler.records.run.entries import Claim, Outcome, copied_end
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series.metrics import MetricWriter
from hostler.records.series.points import Point
from hostler.records.sweep import sweeps
from hostler.records.sweep.summary import ranked
from hostler.spec.inputs import Input
from hostler.spec.job import Job
from hostler.store import Store


@pytest.fixture
def job(store: Store) -> Job:
    made = Job(name="s", command=("x",), runs=({"n": 0}, {"n": 1}), metric="acc", goal="max")
    assert sweeps.submit(store, made)
    return made


def train(store: Store, job: Job, tmp: Path, index: int, state: str, *values: float) -> RunKey:
    """A run with a checkpoint at each of these values, steps 10, 20, …, that ended so."""
    key = RunKey(job.name, job.run_id(index))
    held = claim(store, RunLog(store, key).read_on(), 60.0, lambda: 0.0, Claim("w", facts={"host": "h"}))
    assert held is not None
    writer = MetricWriter(store, key.run, held.number)
    for n, value in enumerate(values, start=1):
        writer.write([Point(10 * n, 0.0, {"acc": value})])
        (tmp / "w").mkdir(exist_ok=True)
        (tmp / "w" / "model.pt").write_text(str(value))
        facts = {"position": n, "metric_step": 10 * n}
        checkpoints.save(store, key.run, Place(held.number, n), tmp / "w", lambda f=facts: f, lambda: None)
    total = {"last": values[-1], "min": min(values), "max": max(values), "step": 10 * len(values)}
    held.end(state, attempts=1, metrics={"acc": total})
    return key


def taken(store: Store, **given: Any) -> dict[str, Any]:
    found = upstream.pinned(store, f"r-{sorted(given.items())!r}".translate(_PLAIN), [Input("init", **given)])
    return found["init"]


_PLAIN = str.maketrans(dict.fromkeys("[](),' @/", "-"))


def test_stopped_run_is_an_input_unless_only_done(store: Store, job: Job, tmp_path: Path) -> None:
    key = train(store, job, tmp_path, 0, "stopped", 0.5, 0.9)
    assert taken(store, run="s/0")["step"] == 2
    with pytest.raises(MissingError, match="init is s/0, which is stopped"):
        taken(store, run="s/0", only="done")
    train(store, job, tmp_path, 1, "done", 0.7)
    assert taken(store, best_of="s")["run"] == key.run
    assert taken(store, best_of="s", only="done")["run"] == job.run_id(1)


def test_pruned_run_that_best_shows_is_an_input(store: Store, job: Job, tmp_path: Path) -> None:
    key = train(store, job, tmp_path, 0, "pruned", 0.9)
    train(store, job, tmp_path, 1, "done", 0.1)
    assert ranked(job, rows(store, ["s"]))[0][1].id == key.run
    assert taken(store, best_of="s")["run"] == taken(store, run="s/0")["run"] == key.run
    assert taken(store, best_of="s", only="done")["run"] == job.run_id(1)


@pytest.mark.parametrize("state", ["failed", "diverged"])
def test_other_ends_are_not_inputs_as_before(store: Store, job: Job, tmp_path: Path, state: str) -> None:
    train(store, job, tmp_path, 0, state, 0.9)
    train(store, job, tmp_path, 1, "done", 0.1)
    with pytest.raises(MissingError, match=f"which is {state}"):
        taken(store, run="s/0")
    assert taken(store, best_of="s")["run"] == job.run_id(1)


def test_best_that_was_taken_over_has_the_original_files(store: Store, job: Job, tmp_path: Path) -> None:
    key = train(store, job, tmp_path, 0, "done", 0.9)
    end = RunLog(store, key).read_on().entries[-1]
    other = Job(name="other", command=("x",), runs=({"n": 0},), metric="acc", goal="max")
    assert sweeps.submit(store, other)
    copy = RunLog(store, RunKey("other", other.run_id(0)))
    assert copy.append(copied_end(end, key.run))
    found = taken(store, best_of="other")
    assert (found["run"], found["step"]) == (key.run, 1)


def test_run_that_waits_for_a_stopped_one_goes_on(store: Store, job: Job, tmp_path: Path) -> None:
    later = Job(name="later", command=("x",), runs=({"init": {"run": "s/0@best"}},))
    assert upstream.waiting_for(store, later) == "s/0@best"
    train(store, job, tmp_path, 0, "stopped", 0.9)
    assert upstream.waiting_for(store, later) == ""
    whole = Job(name="later", command=("x",), runs=({"init": {"best-of": "s"}},))
    assert upstream.waiting_for(store, whole) == "s"
    assert control.stop(store, RunKey("s", job.run_id(1))) == "stopped"
    assert upstream.waiting_for(store, whole) == ""


def test_input_is_the_checkpoint_of_its_step(store: Store, job: Job, tmp_path: Path) -> None:
    train(store, job, tmp_path, 0, "stopped", 0.5, 0.9, 0.7)
    for given, number in (
        ({"run": "s/0", "step": 10}, 1),
        ({"run": "s/0@10"}, 1),
        ({"run": "s/0", "step": "best"}, 2),
        ({"run": "s/0@best"}, 2),
        ({"run": "s/0@last", "file": "model.pt"}, 3),
        ({"best_of": "s", "step": "best"}, 2),
        ({"best_of": "s@20"}, 2),
    ):
        assert taken(store, **given)["step"] == number, given


def test_bad_steps_are_said_in_a_line_before_anything_starts(store: Store, job: Job, tmp_path: Path) -> None:
    train(store, job, tmp_path, 0, "stopped", 0.5, 0.9)
    train(store, job, tmp_path, 1, "done", 0.5)

    def check(reference: dict[str, Any]) -> None:
        upstream.check(store, Job(name="x", command=("true",), runs=({"init": reference},)))

    with pytest.raises(MissingError, match="s/0: step 15 is not kept; kept steps: 10, 20"):
        check({"run": "s/0", "step": 15})
    with pytest.raises(UsageError, match="'bst' is not a step"):
        check({"run": "s/0@bst"})
    with pytest.raises(UsageError, match="the step is given twice"):
        check({"run": "s/0@10", "step": 20})
    with pytest.raises(MissingError, match=r"@20 has no file x\.pt"):
        taken(store, run="s/0@20", file="x.pt")
    check({"run": "s/0@20"})


def test_gc_keeps_what_a_waiting_run_takes_by_step(store: Store, job: Job, tmp_path: Path) -> None:
    train(store, job, tmp_path, 0, "done", 0.5)
    train(store, job, tmp_path, 1, "done", 0.9)
    assert [one.row.index for one in garbage.find(store, 1e12, grace=1.0).saved] == [0]
    assert sweeps.submit(store, Job(name="later", command=("x",), runs=({"init": {"run": "s/0@10"}},)))
    assert not garbage.find(store, 1e12, grace=1.0).saved


@pytest.mark.parametrize("paused", [True, False])
def test_run_stopped_without_its_worker_keeps_its_values(store: Store, job: Job, paused: bool) -> None:
    key = RunKey(job.name, job.run_id(0))
    held = claim(store, RunLog(store, key).read_on(), 60.0, lambda: 0.0, Claim("w", facts={"host": "h"}))
    assert held is not None
    MetricWriter(store, key.run, held.number).write([Point(3, 0.0, {"acc": 0.5})])
    if paused:
        held.close(Outcome("paused", "pause"))
    assert (control.stop if paused else control.kill)(store, key) == "stopped"
    end = control.state_of(store, key).end or {}
    assert end["metrics"]["acc"]["last"] == 0.5 and end["step"] == 3
    assert upstream.best(store, "s") == key


def test_values_before_a_fresh_start_do_not_count(store: Store, job: Job, tmp_path: Path) -> None:
    key = train(store, job, tmp_path, 0, "done", 0.5)
    control.retry(store, key, fresh=True)
    assert control.stop(store, key) == "stopped"
    assert "metrics" not in (control.state_of(store, key).end or {})
