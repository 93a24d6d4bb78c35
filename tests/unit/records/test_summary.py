"""A sweep in one line."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan

from hostler.records.rows import Row
from hostler.records.sweep.summary import ranked, summarize
from hostler.spec import spans
from hostler.spec.job import Budget, Job, Objective
from hostler.spec.ranking import Judged

JOB = Job(name="s", command=("x",), runs=tuple({"i": i} for i in range(10)), metric="acc", method="grid")


def row(index: int, state: str = "done", **given: object) -> Row:
    return Row(f"{index:07d}-s-aaaaaa", f"s/{index}", "s", index, state, {"i": index}, **given)  # type: ignore[arg-type]


def test_what_nobody_had_is_counted_as_queued() -> None:
    found = summarize(JOB, [row(0), row(1, "running"), row(2, "queued")])
    assert found.counts == {"queued": 8, "running": 1, "done": 1}
    assert found.runs == 10


def test_sweep_does_not_call_runs_of_silent_holders_running() -> None:
    touched = [row(0), row(1, "running"), row(2, "running", stale=True), row(3, "running", stale=True)]
    found = summarize(JOB, touched)
    assert found.states == "6 queued, 1 running, 2 lost?, 1 done" and found.silent == 2
    assert summarize(JOB, touched[2:]).states == "8 queued, 2 lost?"


def test_what_was_dropped_or_thrown_away_is_not_counted() -> None:
    job = Job(**{**vars(JOB), "dropped": spans.of([7, 8, 9])})
    found = summarize(job, [row(0), row(1, trashed=True), row(7)])
    assert found.counts == {"queued": 5, "done": 2}


def test_time_left_is_of_waiting_runs_by_running_ones() -> None:
    touched = [row(i, seconds=60.0) for i in range(4)] + [row(4, "running"), row(5, "running")]
    assert summarize(JOB, touched).eta == 60 * (4 + 1) / 2


def test_time_left_is_absent_before_anything_is_known() -> None:
    assert summarize(JOB, [row(0, "running")]).eta is None
    assert summarize(JOB, [row(0, seconds=60.0)]).eta is None
    assert summarize(JOB, [row(0, seconds=60.0), row(1, "running", stale=True)]).eta is None


def test_results_that_were_taken_over_tell_no_time() -> None:
    assert summarize(JOB, [row(0, seconds=9.0, copy_of="x"), row(1, "running")]).seconds is None


def test_best_goes_by_the_goal_and_the_first_of_equals() -> None:
    touched = [row(i, judged=Judged(v)) for i, v in enumerate([1.0, 3.0, nan, inf, 3.0, 0.5])]
    assert [r.index for _, r in ranked(JOB, touched)] == [1, 4, 0, 5]
    assert [r.index for _, r in ranked(JOB, touched, Objective("acc", "min"))] == [5, 0, 1, 4]
    best = summarize(JOB, touched)
    assert best.best is not None and (best.best.index, best.value) == (1, 3.0)


def test_runs_that_did_not_end_well_are_not_the_best() -> None:
    touched = [row(0, "failed", judged=Judged(9.0)), row(1, "running", judged=Judged(8.0))]
    assert summarize(JOB, touched).best is None


def test_a_metric_that_no_finished_run_has_logged_is_said() -> None:
    touched = [row(0, metrics={"accuracy": 1.0, "system/cpu": 2.0})]
    assert summarize(JOB, touched).unlogged == "no finished run has logged acc; logged: accuracy"
    assert summarize(JOB, [row(0, metrics={"acc": 1.0})]).unlogged == ""
    assert summarize(JOB, [row(0, "running")]).unlogged == ""


def test_which_code_finished_how_many_is_told() -> None:
    touched = [row(0, code="a"), row(1, code="b"), row(2, code="b"), row(3, "failed", code="b")]
    assert summarize(JOB, touched).codes == {"a": 1, "b": 2}


def test_runs_a_search_has_not_chosen_yet_take_time_too() -> None:
    search = replace(JOB, runs=({"i": 0}, {"i": 1}), search={"parameters": {}}, budget=Budget(runs=6))
    found = summarize(search, [row(0, seconds=60.0), row(1, "running")])
    assert (found.runs, found.unchosen, found.eta) == (2, 4, 60 * (4 + 0.5))
