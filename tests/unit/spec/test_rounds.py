"""Runs that are computed: the same in every process, few words however many there are."""

from __future__ import annotations

import json
import re

import pytest

from hostler.spec import job as jobs
from hostler.spec import space, spans
from hostler.spec.job import Budget, Job, Objective
from hostler.spec.rounds import Round


def sweep(*rounds: Round, **given: object) -> Job:
    return Job(name="s", command=("x",), runs=(), rounds=rounds, method="grid", **given)  # type: ignore[arg-type]


def a_round(parameters: dict[str, object], cells: list[int] | None = None, **given: object) -> Round:
    found = space.parse(parameters, **given)  # type: ignore[arg-type]
    return Round(found, spans.whole(found.count) if cells is None else spans.of(cells), ("x",))


def again(job: Job) -> Job:
    return jobs.from_json(json.loads(json.dumps(jobs.to_json(job))))


def test_stored_sweep_reads_back_with_equal_runs() -> None:
    job = sweep(
        a_round({"lr": [0.1, 0.2], "w": [1, 2]}),
        a_round({"lr": [0.1, 0.2, 0.3], "w": [1, 2]}, [4, 5]),
        dropped=spans.of([1]),
        objectives=(Objective("acc"), Objective("loss", "min")),
        budget=Budget(runs=6, hours=1.5),
        parallel=2,
    )
    back = again(job)
    assert back.count == 6
    assert [back.params(i) for i in range(6)] == [job.params(i) for i in range(6)]
    assert back.params(5) == {"lr": 0.3, "w": 2}
    assert [back.run_id(i) for i in range(6)] == [job.run_id(i) for i in range(6)]
    assert (back.dropped, back.objectives, back.budget) == (job.dropped, job.objectives, job.budget)
    assert list(back.indices()) == [0, 2, 3, 4, 5]


def test_a_million_runs_are_a_few_lines() -> None:
    job = sweep(a_round({"a": list(range(100)), "b": list(range(100)), "c": list(range(100))}))
    assert job.count == 1_000_000
    assert len(json.dumps(jobs.to_json(job))) < 10_000
    assert job.params(999_999) == {"a": 99, "b": 99, "c": 99}
    assert re.fullmatch(r"0999999-s-[0-9a-f]{6}", job.run_id(999_999))


def test_repeats_of_one_configuration_are_different_runs() -> None:
    job = sweep(a_round({"lr": [0.1, 0.2]}, repeat=2))
    assert job.count == 4
    assert job.params(0) == job.params(2)
    assert len({job.mark(i) for i in range(4)}) == 4
    assert [job.repeat(i) for i in range(4)] == [0, 0, 1, 1]


def test_repeat_parameter_alone_identifies_a_repeat() -> None:
    three = sweep(a_round({"lr": [0.1]}, repeat={"seed": [1, 7, 9]}))
    two = sweep(a_round({"lr": [0.1]}, repeat={"seed": [7, 9]}))
    assert [three.mark(1), three.mark(2)] == [two.mark(0), two.mark(1)]


def test_an_index_that_was_never_given_out_is_an_error() -> None:
    job = sweep(a_round({"lr": [0.1, 0.2]}))
    with pytest.raises(IndexError):
        job.params(2)


def test_single_run_id_is_unchanged_by_rounds() -> None:
    assert (
        Job(name="demo", command=("python", "t.py"), runs=({"lr": 0.1},)).run_id(0) == "0000000-demo-1f414b"
    )
