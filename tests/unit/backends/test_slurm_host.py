"""A worker that is a Slurm task: its id, its time."""

from __future__ import annotations

import pytest

from hostler.backends.slurm.host import SlurmHost, host_of, parse_left


@pytest.mark.parametrize(("variables", "task"), [
    ({}, SlurmHost("")),
    ({"SLURM_JOB_ID": "71"}, SlurmHost("71")),
    ({"SLURM_JOB_ID": "80", "SLURM_ARRAY_JOB_ID": "71", "SLURM_ARRAY_TASK_ID": "9"}, SlurmHost("71_9")),
    ({"SLURM_JOB_ID": "71", "SLURM_JOB_END_TIME": "1700000100"}, SlurmHost("71", 1700000100.0)),
])  # fmt: skip
def test_a_task_knows_itself_exactly(variables: dict[str, str], task: SlurmHost) -> None:
    assert host_of(variables) == task


def test_the_time_left_is_by_the_end_that_slurm_tells() -> None:
    assert SlurmHost("71", 1100.0).seconds_left(lambda: 1000.0) == 100.0


@pytest.mark.parametrize(("text", "seconds"), [
    ("4", 4), ("3:04", 184), ("2:03:04", 7384), ("1-02:03:04", 93784), ("0:00", 0),
    ("UNLIMITED", None), ("NOT_SET", None), ("INVALID", None), ("", None),
    (5000 * "9", None),
])  # fmt: skip
def test_squeues_time_left_is_read(text: str, seconds: float | None) -> None:
    assert parse_left(text) == seconds


def test_srun_starts_one_worker_per_node_that_end_apart() -> None:
    words = host_of({"SLURM_CPUS_PER_TASK": "4"}).on_nodes(["python", "w"], 3)
    assert words[0] == "srun" and words[-2:] == ["python", "w"]
    assert {"--nodes=3", "--ntasks=3", "--kill-on-bad-exit=0", "--cpus-per-task=4"} <= set(words)


def test_outside_of_a_task_nothing_is_shown_limited_or_queued() -> None:
    host = host_of({})
    host.show("run")
    assert host.seconds_left() is None and host.give_back() is None


def test_requeued_task_is_a_later_tenant_of_its_place() -> None:
    task = {"SLURM_ARRAY_JOB_ID": "71", "SLURM_ARRAY_TASK_ID": "3", "SLURM_CLUSTER_NAME": "c"}
    first, again = host_of(task).place(), host_of({**task, "SLURM_RESTART_COUNT": "2"}).place()
    assert first == ("c 71_3 0", 0) and again == ("c 71_3 0", 2)
    assert host_of({**task, "SLURM_PROCID": "1"}).place() == ("c 71_3 1", 0)
    assert host_of({}).place() == ("", 0)
