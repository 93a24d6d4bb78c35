"""A lost run goes on after one lease, whatever the others are busy with, or at once in the same place."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from killer import farm, keys_of, until
from takeovers import beats, holder, is_taken_over, last_beat, taken_over, vanish

from hostler.records.run.log import RunLog
from hostler.records.run.state import fold

SLACK = 6.0  # seconds that a loaded machine may take for a beat, a run of a moment, and a claim


@pytest.mark.timeout(300)
def test_busy_worker_takes_a_lost_run_before_fresh_ones(tmp_path: Path) -> None:
    url, times = str(tmp_path / "store"), {"beat": 0.5, "lease": 6.0}
    with (
        holder(url, tmp_path / "lost", runs=400, **times) as (lost, job),
        farm(url, tmp_path / "busy", **times) as busy,
    ):
        busy.start("--slots", "1")
        until(lambda: busy.open_runs(job) < 399, why=busy.said)
        vanish(lost)
        waited = taken_over(busy, job) - last_beat(lost, job)
        assert waited >= 6.0 - 0.5, "it was taken for dead too early"
        assert waited <= 6.0 + 2 * 0.5 + SLACK
        assert busy.open_runs(job) > 1, "fresh runs were left, and had to wait"


@pytest.mark.timeout(300)
@pytest.mark.parametrize("words", [(), ("--runs", "1"), ("--billed",)])
def test_worker_that_could_leave_stays_for_a_silent_holder(tmp_path: Path, words: tuple[str, ...]) -> None:
    url, times = str(tmp_path / "store"), {"beat": 0.5, "lease": 8.0}
    with (
        holder(url, tmp_path / "lost", runs=1, **times) as (lost, job),
        holder(url, tmp_path / "last", *words, name="other", **times) as (last, other),
    ):
        until(lambda: beats(last, other) > 3, why=last.said)  # it has seen the other one beat
        vanish(lost)
        time.sleep(4 * 0.5)  # beats are missed
        (tmp_path / "last" / "gate").touch()
        (tmp_path / "lost" / "gate").touch()
        assert taken_over(last, job) - last_beat(lost, job) <= 8.0 + 2 * 0.5 + SLACK
        until(lambda: not last.is_open(keys_of(job)[0]), why=last.said)
        assert last.parents[0].wait(60) == 0
        assert not last.is_open(keys_of(other)[0])


@pytest.mark.timeout(300)
def test_worker_leaves_at_once_while_other_holders_beat(tmp_path: Path) -> None:
    url, times = str(tmp_path / "store"), {"beat": 0.5, "lease": 60.0}
    with (
        holder(url, tmp_path / "long", **times) as (long, job),
        holder(url, tmp_path / "short", "--runs", "1", name="other", **times) as (short, _),
    ):
        begun = time.monotonic()
        (tmp_path / "short" / "gate").touch()
        assert short.parents[0].wait(60) == 0
        assert time.monotonic() - begun < 30.0, "it waited for a holder that beats"
        assert long.is_open(keys_of(job)[0]) and not is_taken_over(long, job)


@pytest.mark.timeout(300)
def test_requeued_task_takes_its_predecessors_run_at_once(tmp_path: Path) -> None:
    url, task = str(tmp_path / "store"), {"SLURM_JOB_ID": "71", "SLURM_CLUSTER_NAME": "c"}
    times = {"beat": 0.5, "lease": 120.0}
    with holder(url, tmp_path / "first", "--host", "slurm", extra=task, **times) as (lost, job):
        vanish(lost)
        again = {**task, "SLURM_RESTART_COUNT": "1"}
        with farm(url, tmp_path / "again", again, **times) as made:
            (tmp_path / "first" / "gate").touch()
            made.start("--slots", "1", "--host", "slurm")
            until(lambda: is_taken_over(made, job), 60, why=made.said)
            until(lambda: not made.is_open(keys_of(job)[0]), why=made.said)
            assert made.parents[0].wait(60) == 0
        state = fold(RunLog(lost.store, keys_of(job)[0]).read_on().entries)
        assert state.state == "done" and state.attempts == 2


@pytest.mark.timeout(300)
def test_another_task_waits_for_the_lease(tmp_path: Path) -> None:
    url, times = str(tmp_path / "store"), {"beat": 0.5, "lease": 8.0}
    with holder(url, tmp_path / "first", "--host", "slurm", extra={"SLURM_JOB_ID": "71"}, **times) as (
        lost,
        job,
    ):
        vanish(lost)
        other = {"SLURM_JOB_ID": "72", "SLURM_RESTART_COUNT": "1"}
        with farm(url, tmp_path / "other", other, **times) as made:
            made.start("--slots", "1", "--host", "slurm")
            assert taken_over(made, job) - last_beat(lost, job) >= 8.0 - 0.5
