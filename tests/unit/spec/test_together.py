"""Which runs may share a process, from a job alone."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hostler.spec.job import Job, Resources, Together, from_json, to_json
from hostler.spec.together import key_of, limit_of

RUNS = ({"lr": 1, "size": 1}, {"lr": 2, "size": 1}, {"lr": 1, "size": 2})
JOB = Job(name="j", command=("hostler", "train"), runs=RUNS, together=Together(4, ("lr",)))


def test_runs_that_differ_in_free_parameters_alone_have_one_key() -> None:
    assert key_of(JOB, 0) == key_of(JOB, 1) != key_of(JOB, 2)


def test_another_command_is_another_key() -> None:
    assert key_of(JOB, 0) != key_of(replace(JOB, command=("hostler", "train", "x")), 0)


@pytest.mark.parametrize(
    "changed",
    [
        {"together": Together()},
        {"together": Together(4, ("lr",), apart=(key_of(JOB, 0),))},
        {"resources": Resources(nodes=2)},
        {"resources": Resources(procs_per_node=2)},
    ],
)
def test_what_goes_alone_has_a_limit_of_one(changed: dict[str, object]) -> None:
    assert limit_of(JOB, 0) == 4
    assert limit_of(replace(JOB, **changed), 0) == 1  # type: ignore[arg-type]


def test_a_job_keeps_what_was_said_of_it() -> None:
    assert from_json(to_json(JOB)).together == JOB.together
