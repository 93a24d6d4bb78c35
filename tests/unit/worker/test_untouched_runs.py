"""Candidates for claims: shares of their own, the oldest first, and the others' only at the end."""

from __future__ import annotations

import random
from collections import Counter
from itertools import islice

from hostler.records.run import log
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.records.sweep.queue import Queue
from hostler.spec import spans
from hostler.spec.job import Job, Resources
from hostler.store.memory import MemoryStore
from hostler.worker.claim.untouched_runs import DEPTH, UntouchedRuns, WorkerPosition


def queue_of(count: int, store: MemoryStore | None = None, **given: object) -> Queue:
    job = Job(name="s", command=("true",), runs=tuple({"i": i} for i in range(count)), **given)  # type: ignore[arg-type]
    store = store or MemoryStore()
    sweeps.submit(store, job)
    return Queue(store, job)


def touch(store: MemoryStore, queue: Queue, *indices: int) -> None:
    for index in indices:
        assert RunLog(store, RunKey("s", queue.job.run_id(index))).append({"kind": log.CLAIM})


def chosen(glances: UntouchedRuns, queue: Queue, place: WorkerPosition, count: int) -> list[int]:
    candidates = glances.choose([queue], lambda ask: True, lambda: place)
    return [run.key.index for _, run in islice(candidates, count)]


def test_every_worker_has_a_share_and_takes_the_oldest_first() -> None:
    queue = queue_of(100)
    first = chosen(UntouchedRuns(random.Random(1)), queue, WorkerPosition(0, 2), 5)
    second = chosen(UntouchedRuns(random.Random(2)), queue, WorkerPosition(1, 2), 5)
    assert first == [0, 2, 4, 6, 8] and second == [1, 3, 5, 7, 9]


def test_one_glance_serves_several_claims() -> None:
    store = MemoryStore()
    queue = queue_of(10_000, store)
    asked: Counter[str] = Counter()
    store.before = lambda op, key: asked.update([op])
    glances = UntouchedRuns(random.Random(1))
    for _ in range(DEPTH):
        assert len(chosen(glances, queue, WorkerPosition(7, 100), 1)) == 1
    assert asked == {"list": 1}


def test_share_that_is_its_own_alone_costs_one_glance() -> None:
    store = MemoryStore()
    queue = queue_of(10_000, store)
    asked: Counter[str] = Counter()
    store.before = lambda op, key: asked.update([op])
    glances = UntouchedRuns(random.Random(1))
    taken = [chosen(glances, queue, WorkerPosition(7, 100), 1)[0] for _ in range(100)]
    assert taken == list(range(7, 10_000, 100))
    assert asked == {"list": 1}


def test_lost_run_of_the_own_share_brings_a_glance() -> None:
    store = MemoryStore()
    queue = queue_of(10_000, store)
    glances = UntouchedRuns(random.Random(1))
    for _ in range(DEPTH):
        chosen(glances, queue, WorkerPosition(0, 2), 1)
    touch(store, queue, *range(2 * DEPTH, 60))
    asked: Counter[str] = Counter()
    store.before = lambda op, key: asked.update([op])
    assert chosen(glances, queue, WorkerPosition(0, 2), 3) == [2 * DEPTH, 60, 62]
    assert asked == {"list": 1}
    assert chosen(glances, queue, WorkerPosition(0, 2), 1) == [64]


def test_own_share_leaves_out_runs_of_other_sections() -> None:
    store = MemoryStore()
    queue = Queue(store, queue_of(100, store).job, spans.of([*range(6), *range(20, 90)]))
    glances = UntouchedRuns(random.Random(1))
    assert [chosen(glances, queue, WorkerPosition(0, 2), 1)[0] for _ in range(12)] == [
        *range(6, 20, 2),
        *range(90, 100, 2),
    ]


def test_others_runs_are_looked_for_near_the_end() -> None:
    store = MemoryStore()
    queue = queue_of(10_000, store)
    touch(store, queue, *range(9000), *range(9000, 10_000, 2))
    listed: list[str] = []
    store.before = lambda op, key: listed.append(op)
    glances = UntouchedRuns(random.Random(1))
    glances._seen["s"] = 10_000
    assert all(index >= 9984 for index in chosen(glances, queue, WorkerPosition(), 4))
    assert listed == ["list"]


def test_worker_with_an_empty_share_takes_from_the_others() -> None:
    store = MemoryStore()
    queue = queue_of(8, store)
    touch(store, queue, 0, 2, 4, 6)
    assert set(chosen(UntouchedRuns(random.Random(1)), queue, WorkerPosition(0, 2), 4)) == {1, 3, 5, 7}


def test_a_sweep_that_does_not_fit_is_passed_over() -> None:
    queue = queue_of(4, resources=Resources(gpus=1))
    assert (
        list(
            UntouchedRuns(random.Random(1)).choose(
                [queue], lambda job: not job.resources.gpus, WorkerPosition
            )
        )
        == []
    )


def test_glance_sees_only_untouched_runs_from_its_start() -> None:
    store = MemoryStore()
    queue = queue_of(10, store)
    touch(store, queue, 0, 1, 3, 7)
    assert queue.glance(3) == [2, 4, 5]
    assert queue.glance(3, 5) == [5, 6, 8]
    assert queue.glance(100, 9) == [9]
    touch(store, queue, 2, 4, 5, 6, 8, 9)
    assert queue.glance(5) == []


def test_new_place_chooses_the_rest_of_a_share_anew() -> None:
    store = MemoryStore()
    queue = queue_of(40, store)
    glances = UntouchedRuns(random.Random(1))
    assert chosen(glances, queue, WorkerPosition(), 1) == [0]
    touch(store, queue, 0, 1, 3, 5)
    glances.move()
    taken = [chosen(glances, queue, WorkerPosition(0, 2), 1)[0] for _ in range(6)]
    assert taken == [2, 4, 6, 8, 10, 12]


def test_place_that_changes_meanwhile_is_heeded_at_once() -> None:
    queue, places = queue_of(40), [WorkerPosition()]
    glances = UntouchedRuns(random.Random(1))
    candidates = glances.choose([queue], lambda ask: True, lambda: places[-1])
    assert [next(candidates)[1].key.index for _ in range(2)] == [0, 1]
    places.append(WorkerPosition(1, 3))
    glances.move()
    assert [next(candidates)[1].key.index for _ in range(3)] == [4, 7, 10]
