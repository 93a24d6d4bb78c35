"""All runs as rows, and what they cost."""

from __future__ import annotations

from hostler.records import layout, project
from hostler.records.rows import Row, row_by_key, rows
from hostler.records.run import control, heartbeats
from hostler.records.run.attempt import Attempt, claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.store import Store
from hostler.store.memory import MemoryStore

JOB = Job(
    name="s",
    command=("x",),
    runs=tuple({"i": i} for i in range(4)),
    tags=("base",),
    metric="loss",
    goal="min",
)


def take(store: Store, index: int, session: str = "a") -> Attempt:
    log = RunLog(store, RunKey("s", JOB.run_id(index))).read_on()
    attempt = claim(store, log, 60.0, lambda: 0.0, Claim(session, facts={"host": "h"}))
    assert attempt is not None
    return attempt


def table(store: Store) -> dict[int, Row]:
    return {row.index: row for row in rows(store)}


def test_a_row_for_every_run_whatever_its_state(store: Store) -> None:
    sweeps.submit(store, JOB)
    loss = {"loss": {"min": 0.1, "max": 9.0, "last": 0.2, "step": 5}}
    take(store, 0).end("done", metrics=loss, attempts=1, host="h", step=5, seconds=3.0, exit=0)
    take(store, 1)
    heartbeats.beat(store, "a", 1, {"runs": {JOB.run_id(1): {"step": 7, "metrics": {"loss": 0.5}}}})
    take(store, 2).release(then="queued", failure={"message": "boom"}, metrics=loss)
    sweeps.tag(store, "s", JOB.run_id(0), ["good"], [])
    found = table(store)
    assert [row.state for row in found.values()] == ["done", "running", "queued", "queued"]
    done, running, released, untouched = found.values()
    assert (done.metrics, done.step, done.host, done.tags) == ({"loss": 0.2}, 5, "h", ("base", "good"))
    assert (running.step, running.metrics, running.stale, running.session) == (7, {"loss": 0.5}, False, "a")
    assert (released.failure, released.metrics) == ({"message": "boom"}, {"loss": 0.2})
    assert (untouched.params, untouched.attempt, untouched.name) == ({"i": 3}, 0, "s/3")
    assert done.ended == RunLog(store, done.key).read_on().entries[-1]["at"] and running.ended is None
    assert untouched.key == RunKey("s", JOB.run_id(3))


def test_paused_run_has_the_steps_and_time_it_took(store: Store) -> None:
    sweeps.submit(store, JOB)
    take(store, 0).release(then="paused", why="rung", step=5, seconds=2.5, more={"rung": 3})
    row = table(store)[0]
    assert (row.state, row.paused_by, row.step, row.seconds) == ("paused", "rung", 5, 2.5)
    assert row.rung == 3, "it was told at 3, and had come to 5 by then"


def test_holder_with_a_missing_or_old_heartbeat_is_stale() -> None:
    now = [0.0]
    store = MemoryStore(clock=lambda: now[0])
    project.ensure(store, "p", Timing(lease=15.0))
    sweeps.submit(store, JOB)
    take(store, 0, "old")
    take(store, 1, "none")
    take(store, 2, "new")
    heartbeats.beat(store, "old", 1, {})
    now[0] = 20.0
    heartbeats.beat(store, "new", 1, {})
    found = table(store)
    assert [found[i].stale for i in range(3)] == [True, True, False]
    assert (found[0].beat_age, found[1].beat_age) == (20.0, None)


def test_a_reopened_run_is_not_shown_as_ended(store: Store) -> None:
    sweeps.submit(store, JOB)
    key = RunKey("s", JOB.run_id(0))
    control.stop(store, key)
    assert table(store)[0].state == "stopped"
    control.resume(store, key)
    assert table(store)[0].state == "queued"


def test_run_stopped_before_its_first_attempt_counts_none(store: Store) -> None:
    sweeps.submit(store, JOB)
    control.stop(store, RunKey("s", JOB.run_id(0)))
    row = table(store)[0]
    assert (row.state, row.attempt) == ("stopped", 0)


def test_trashed_runs_are_shown_only_if_asked_for(store: Store) -> None:
    sweeps.submit(store, JOB)
    sweeps.put_in_trash(store, "s", JOB.run_id(2))
    assert [row.index for row in rows(store)] == [0, 1, 3]
    assert [row.index for row in rows(store, trash=True) if row.trashed] == [2]


def test_a_sweep_without_its_spec_is_no_row(store: Store) -> None:
    sweeps.submit(store, JOB)
    sweeps.halt(store, "half", "why")
    assert {row.sweep for row in rows(store)} == {"s"}
    assert rows(store, only=["half"]) == []


def test_an_ended_run_costs_one_read(memory: MemoryStore) -> None:
    sweeps.submit(memory, JOB)
    for index in range(4):
        take(memory, index).end("done")
    asked: list[str] = []
    memory.before = lambda operation, key: asked.append(operation)
    assert len(rows(memory)) == 4
    assert asked.count("get") == 4 + 1


def test_row_by_key_equals_the_row_among_all(store: Store) -> None:
    sweeps.submit(store, JOB)
    take(store, 0).release(then="paused", why="rung", step=5, seconds=2.5)
    take(store, 1)
    take(store, 2).end("done", metrics={"loss": {"last": 0.2}})
    sweeps.tag(store, "s", JOB.run_id(2), ["good"], [])
    for index, row in table(store).items():
        assert row_by_key(store, JOB, RunKey("s", JOB.run_id(index)), print) == row
    assert row_by_key(store, JOB, RunKey("s", "0000001-s-other"), print) is None
    assert row_by_key(store, JOB, RunKey("s", "9000001-s-other"), print) is None


def test_row_by_key_reads_nothing_of_other_runs() -> None:
    store = MemoryStore()
    sweeps.submit(store, JOB)
    take(store, 1)
    read: list[str] = []
    store.before = lambda op, key: read.append(key)
    assert row_by_key(store, JOB, RunKey("s", JOB.run_id(0)), print) is not None
    assert not [key for key in read if JOB.run_id(1) in key or key == layout.logs_of("s")]
