"""A worker that is a Slurm task: its id, its time."""

from __future__ import annotations

import pytest

from hostler.worker.slurm_task import SlurmTask, parse_left, this_task


@pytest.mark.parametrize(("variables", "task"), [
    ({}, None),
    ({"SLURM_JOB_ID": "71"}, SlurmTask("71")),
    ({"SLURM_JOB_ID": "80", "SLURM_ARRAY_JOB_ID": "71", "SLURM_ARRAY_TASK_ID": "9"}, SlurmTask("71_9")),
    ({"SLURM_JOB_ID": "71", "SLURM_JOB_END_TIME": "1700000100"}, SlurmTask("71", 1700000100.0)),
])  # fmt: skip
def test_a_task_knows_itself_exactly(variables: dict[str, str], task: SlurmTask | None) -> None:
    assert this_task(variables) == task


def test_the_time_left_is_by_the_end_that_slurm_tells() -> None:
    assert SlurmTask("71", 1100.0).seconds_left(lambda: 1000.0) == 100.0


@pytest.mark.parametrize(("text", "seconds"), [
    ("4", 4), ("3:04", 184), ("2:03:04", 7384), ("1-02:03:04", 93784), ("0:00", 0),
    ("UNLIMITED", None), ("NOT_SET", None), ("INVALID", None), ("", None),
])  # fmt: skip
def test_squeues_time_left_is_read(text: str, seconds: float | None) -> None:
    assert parse_left(text) == seconds
