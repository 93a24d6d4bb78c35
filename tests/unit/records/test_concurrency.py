"""No more than so many at once, on all workers together."""

from __future__ import annotations

import random
import threading
from dataclasses import replace

from hostler.records import layout
from hostler.records.run import control
from hostler.records.run.attempt import Attempt, claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import concurrency
from hostler.records.sweep.concurrency import Turns
from hostler.spec.job import Job
from hostler.store import Store


def sweep(parallel: int, count: int = 20) -> Job:
    return Job(name="s", command=("x",), runs=tuple({"i": i} for i in range(count)), parallel=parallel)


def take(store: Store, job: Job, index: int) -> Attempt:
    attempt = claim(
        store, RunLog(store, RunKey("s", job.run_id(index))).read_on(), 60.0, lambda: 0.0, Claim()
    )
    assert attempt is not None
    return attempt


def admitted(store: Store, job: Job, attempt: Attempt) -> bool:
    return Turns(store).take(job, attempt.key.run, attempt.number)


def test_so_many_are_admitted_and_no_more(store: Store) -> None:
    job = sweep(2)
    assert [admitted(store, job, take(store, job, i)) for i in range(3)] == [True, True, False]
    assert not Turns(store).free(job)


def test_a_place_is_free_again_when_its_attempt_is_over(store: Store) -> None:
    job = sweep(1)
    one = take(store, job, 0)
    assert admitted(store, job, one)
    control.stop(store, one.key)  # a request: it still runs
    assert not Turns(store).free(job)
    one.look()
    one.end("stopped")
    assert admitted(store, job, take(store, job, 1))


def test_whoever_takes_a_lost_run_over_has_its_place(store: Store) -> None:
    job = sweep(1)
    assert admitted(store, job, take(store, job, 0))
    assert not Turns(store).free(job)
    assert admitted(store, job, take(store, job, 0))
    assert not Turns(store).free(job)


def test_a_smaller_bound_admits_nobody_until_enough_are_over(store: Store) -> None:
    wide, narrow = sweep(3), sweep(2)
    held = [take(store, wide, i) for i in range(3)]
    assert all(admitted(store, wide, one) for one in held)
    held[0].end("done")
    assert not Turns(store).free(narrow)
    held[2].end("done")
    assert Turns(store).free(narrow)


def test_what_ran_before_there_was_a_bound_counts(store: Store) -> None:
    job = sweep(2)
    held = [take(store, job, i) for i in range(3)]
    for _ in range(2):
        concurrency.enrol(store, job, [(one.key.run, one.number) for one in held])
    assert not Turns(store).free(job)
    for one in held[:2]:
        one.end("done")
    assert len(Turns(store).free(job)) >= 1


def test_old_entries_of_a_place_go_away(store: Store) -> None:
    job = sweep(1)
    mine = Turns(store)
    for i in range(10):
        one = take(store, job, i)
        assert mine.take(job, one.key.run, one.number)
        one.end("done")
    assert len(list(store.list(layout.turns("s")))) <= concurrency.KEEP


def test_worker_with_an_old_look_is_not_admitted_beside_newest(store: Store) -> None:
    job = sweep(1)
    slow = Turns(store)
    first = take(store, job, 0)
    assert slow.take(job, first.key.run, first.number)
    first.end("done")
    seen = slow.free(job)
    quick = Turns(store)
    for i in range(1, 6):
        one = take(store, job, i)
        assert quick.take(job, one.key.run, one.number)
        if i < 5:
            one.end("done")
    slow.free = lambda job: seen  # type: ignore[method-assign]
    late = take(store, job, 6)
    assert not slow.take(job, late.key.run, late.number)
    assert len(Turns(store).free(job)) == 0


def test_many_workers_at_once_never_have_more_than_allowed(store: Store) -> None:
    job = sweep(3, 60)
    lock, now, most, done = threading.Lock(), [0], [0], set[int]()

    def work(me: int) -> None:
        mine, rng = Turns(store, random.Random(me)), random.Random(me)
        for index in range(me, 60, 6):
            while True:
                attempt = take(store, job, index)
                if mine.take(job, attempt.key.run, attempt.number):
                    break
                attempt.release(then="queued", why="parallel")
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            rng.random()
            with lock:
                now[0] -= 1
                done.add(index)
            attempt.end("done")

    workers = [threading.Thread(target=work, args=(me,)) for me in range(6)]
    for one in workers:
        one.start()
    for one in workers:
        one.join()
    assert len(done) == 60
    assert most[0] <= 3


def test_bound_comes_from_the_spec_so_a_change_holds_immediately(store: Store) -> None:
    job = sweep(1)
    assert admitted(store, job, take(store, job, 0))
    assert not Turns(store).free(job)
    assert Turns(store).free(replace(job, parallel=2))
