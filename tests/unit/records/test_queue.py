"""What of a sweep is open, and what it costs to know."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hostler.records import layout
from hostler.records.body import encode
from hostler.records.run import control
from hostler.records.run.attempt import Attempt, claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep.journal import Journal, JournalEntry
from hostler.records.sweep.queue import AHEAD, Queue
from hostler.spec import space, spans
from hostler.spec.job import Job
from hostler.spec.rounds import Round
from hostler.store import Store
from hostler.store.memory import MemoryStore


def sweep(count: int) -> Job:
    return Job(name="s", command=("x",), runs=tuple({"i": i} for i in range(count)))


def take(store: Store, job: Job, index: int) -> Attempt:
    log = RunLog(store, RunKey(job.name, job.run_id(index))).read_on()
    attempt = claim(store, log, 60.0, lambda: 0.0, Claim("a"))
    assert attempt is not None
    return attempt


def end(store: Store, job: Job, *indices: int) -> None:
    for index in indices:
        take(store, job, index).end("done")


def opened(queue: Queue, *, whole: bool = False) -> list[tuple[int, str]]:
    return [(run.key.index, run.state.state) for run in queue.open(whole=whole)]


def test_what_nobody_touched_is_queued_in_order(store: Store) -> None:
    assert opened(Queue(store, sweep(3))) == [(0, "queued"), (1, "queued"), (2, "queued")]


def test_a_queue_sees_what_happens_to_its_runs(store: Store) -> None:
    job = sweep(4)
    queue = Queue(store, job)
    opened(queue)
    attempt = take(store, job, 1)
    end(store, job, 0, 3)
    assert opened(queue) == [(1, "running"), (2, "queued")]
    attempt.release(then="paused")
    assert opened(queue) == [(1, "paused"), (2, "queued")]
    end(store, job, 2)
    control.stop(store, RunKey("s", job.run_id(1)))
    assert opened(queue) == []
    assert opened(queue) == []


def test_reopened_run_is_seen_by_a_whole_look(store: Store) -> None:
    job = sweep(600)
    queue = Queue(store, job)
    control.kill(store, RunKey("s", job.run_id(0)))
    assert len(opened(queue, whole=True)) == 599
    control.resume(store, RunKey("s", job.run_id(0)))
    assert opened(queue, whole=True)[0] == (0, "queued")
    assert opened(queue)[0] == (0, "queued")


def test_a_reopened_run_that_ended_again_has_ended(store: Store) -> None:
    job = sweep(1)
    control.kill(store, RunKey("s", job.run_id(0)))
    control.resume(store, RunKey("s", job.run_id(0)))
    end(store, job, 0)
    assert opened(Queue(store, job)) == []


def test_the_copy_of_an_end_that_is_missing_is_made(store: Store) -> None:
    job = sweep(2)
    end(store, job, 0)
    key = layout.end("s", job.run_id(0), 2)
    copy = store.get(key).data
    store.delete(key)
    assert opened(Queue(store, job)) == [(1, "queued")]
    assert store.get(key).data == copy


def test_an_old_copy_does_not_end_a_reopened_run(store: Store) -> None:
    job = sweep(1)
    control.kill(store, RunKey("s", job.run_id(0)))
    control.resume(store, RunKey("s", job.run_id(0)))
    assert [*store.list(layout.ends("s"))]
    assert opened(Queue(store, job)) == [(0, "queued")]


@pytest.fixture(scope="module")
def late() -> tuple[MemoryStore, Job]:
    """10,000 runs, all ended but the fourth, which is running, and the last five."""
    store, job = MemoryStore(), sweep(10_000)
    claimed, ended = encode({"kind": "claim", "session": "a"}), encode({"kind": "end", "state": "done"})
    for index in range(9_995):
        run = job.run_id(index)
        store.put(layout.log_entry("s", run, 1), claimed)
        if index != 3:
            store.put(layout.log_entry("s", run, 2), ended)
            store.put(layout.end("s", run, 2), ended)
    return store, job


def test_glance_begins_behind_runs_that_a_look_saw_ended() -> None:
    store, job = MemoryStore(), sweep(2_000)
    for index in range(1_500):
        end(store, job, index)
    queue = Queue(store, job)
    assert queue.open(trusting=True)
    asked: list[str] = []
    store.before = lambda operation, key: asked.append(operation)
    assert queue.glance(3) == [1_500, 1_501, 1_502]
    assert asked == ["list"]


def test_late_look_in_a_large_sweep_does_not_list_everything(late: tuple[MemoryStore, Job]) -> None:
    store, job = late
    queue = Queue(store, job)
    assert len(opened(queue)) == 6
    asked: list[str] = []
    store.before = lambda operation, key: asked.append(operation)
    assert [index for index, _ in opened(queue)] == [3, *range(9_995, 10_000)]
    store.before = None
    assert asked == ["list"] * 4


def test_a_whole_look_reads_names_alone(late: tuple[MemoryStore, Job]) -> None:
    store, job = late
    asked: list[str] = []
    store.before = lambda operation, key: asked.append(operation)
    queue = Queue(store, job)
    opened(queue, whole=True)
    store.before = None
    assert asked.count("get") == 1
    assert len(asked) < 40


@pytest.mark.parametrize("still_open", [[0, 1, 2], [0, 999], [0, 300, 301, 700], [500], [249, 250, 998]])
def test_every_open_run_is_found_again_wherever_it_lies(still_open: list[int], memory: MemoryStore) -> None:
    job = sweep(1_000)
    ended = encode({"kind": "end", "state": "done"})
    for index in set(range(1_000)) - set(still_open):
        memory.put(layout.log_entry("s", job.run_id(index), 1), ended)
        memory.put(layout.end("s", job.run_id(index), 1), ended)
    queue = Queue(memory, job)
    for _ in range(3):
        assert [index for index, _ in opened(queue)] == still_open
    end(memory, job, still_open[0])
    assert [index for index, _ in opened(queue)] == still_open[1:]


def test_what_a_search_adds_is_queued_after_what_was_there(store: Store) -> None:
    job = Job(name="s", command=("x",), runs=(), search={"parameters": {}})
    queue, journal = Queue(store, job), Journal(store, "s")
    queue.grow()
    assert opened(queue) == []
    for i in range(2):
        journal.append(JournalEntry({"i": i}), None)
    queue.grow()
    assert opened(queue) == [(0, "queued"), (1, "queued")]
    assert queue.glance(5) == [0, 1]
    end(store, queue.job, 0, 1)
    assert opened(queue) == []
    journal.append(JournalEntry({"i": 2}), None)
    queue.grow()
    assert queue.glance(5) == [2]
    assert opened(queue) == [(2, "queued")]
    assert queue.job.params(2) == {"i": 2}


def test_runs_reopened_together_are_all_found_while_they_wait(store: Store) -> None:
    job = sweep(4)
    for index in range(4):
        take(store, job, index).end("failed")
        control.retry(store, RunKey("s", job.run_id(index)))
    queue = Queue(store, job)
    assert len(queue.open(whole=True)) == 4
    take(store, job, 0).end("done")
    assert [run.key.index for run in queue.open(trusting=True)] == [1, 2, 3]
    take(store, job, 2).end("done")
    assert [run.key.index for run in queue.open(trusting=True)] == [1, 3]


def test_what_was_dropped_is_not_found_unless_somebody_had_it(store: Store) -> None:
    job = replace(sweep(12), dropped=spans.of(range(2, 9)))
    take(store, job, 4).release(then="queued")
    queue = Queue(store, job)
    assert queue.glance(4) == [0, 1, 9, 10]
    assert [index for index, _ in opened(queue)] == [0, 1, 4, 9, 10, 11]


def test_glance_passes_over_dropped_and_taken_runs(store: Store) -> None:
    job = replace(sweep(30), dropped=spans.of(range(20)))
    take(store, job, 20)
    take(store, job, 22)
    assert Queue(store, job).glance(3) == [21, 23, 24]


def test_a_million_runs_that_wait_are_not_all_made(store: Store) -> None:
    found = space.parse({"a": list(range(1000)), "b": list(range(1000))})
    one = Round(found, spans.whole(found.count), ("x",))
    job = Job(name="s", command=("x",), runs=(), rounds=(one,))
    take(store, job, 500_000).end("done")
    queue = Queue(store, job)
    assert len(queue.open(whole=True)) == AHEAD
    assert queue.glance(2, 500_000) == [500_001, 500_002]
