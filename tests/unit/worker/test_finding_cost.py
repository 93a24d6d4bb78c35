"""What a worker takes, and what looking for it costs."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from hostler.records import layout
from hostler.records.body import encode
from hostler.records.run import control, heartbeats
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.store.memory import MemoryStore
from hostler.worker.claim import finder
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.finder import Finder, Found

JOB = Job(name="s", command=("x",), runs=({"i": 0}, {"i": 1}))
TIMING = Timing(lease=60.0)


class Looker:
    """A worker that looks on its own clock."""

    def __init__(self, store: MemoryStore, session: str) -> None:
        self.now = 0.0
        self._finder = Finder(
            store, Claimant(session, {"host": session}), TIMING, lambda: self.now, rng=random.Random(1)
        )

    def look(self) -> Found:
        self.now += 10.0
        return self._finder.find(lambda ask: True, lambda ask: True, whole=True)


def test_a_spec_is_read_once_until_it_changes() -> None:
    store = MemoryStore()
    sweeps.submit(store, JOB)
    worker, asked = Looker(store, "a"), list[str]()
    store.before = lambda operation, key: asked.append(f"{operation} {key}")
    for _ in range(3):
        worker.look()
    assert sum("get" in request and "/spec/" in request for request in asked) == 1
    sweeps.submit(store, replace(JOB, runs=(*JOB.runs, {"i": 2})), version=2)
    found = worker.look()
    assert found.taken is not None
    assert found.taken.attempt.key.index == 2


def test_sweep_submitted_again_under_its_old_name_is_reread() -> None:
    store = MemoryStore()
    sweeps.submit(store, JOB)
    worker = Looker(store, "a")
    worker.look()
    store.delete(*[entry.key for entry in store.list("sweeps/")])
    sweeps.submit(store, replace(JOB, command=("y",)))
    taken = worker.look().taken
    assert taken is not None
    assert taken.job.command == ("y",)


def test_run_is_taken_over_only_after_a_lease_of_silence() -> None:
    store = MemoryStore()
    sweeps.submit(store, replace(JOB, runs=({},)))
    assert Looker(store, "a").look().taken
    other = Looker(store, "b")
    found = [other.look() for _ in range(7)]
    assert [look.taken is not None for look in found] == [False] * 6 + [True]
    assert found[0].unheld == 1


def test_stop_request_of_a_lost_holder_is_answered_by_anyone() -> None:
    store = MemoryStore()
    sweeps.submit(store, replace(JOB, runs=({},)))
    taken = Looker(store, "a").look().taken
    assert taken is not None
    key = RunKey("s", taken.attempt.key.run)
    control.stop(store, key)
    other = Looker(store, "b")
    assert not any(other.look().taken for _ in range(9))
    state = control.state_of(store, key)
    assert (state.state, (state.end or {})["attempts"]) == ("stopped", 1)


def test_run_lost_repeatedly_without_a_save_fails() -> None:
    store = MemoryStore()
    sweeps.submit(store, replace(JOB, runs=({},)))
    for n in range(40):
        worker = Looker(store, f"w{n}")
        if not any(worker.look().taken for _ in range(9)):
            break
    state = control.state_of(store, RunKey("s", replace(JOB, runs=({},)).run_id(0)))
    assert (state.state, state.attempts) == ("failed", 6)
    assert "lost 6 times" in (state.failure or {})["message"]


def lists_of_ten_claims(workers: int, runs: int) -> int:
    """Requests for names of runs, by a worker of a fleet that takes one every two leases."""
    store, now = MemoryStore(), 0.0
    sweeps.submit(store, replace(JOB, runs=tuple({"i": i} for i in range(runs))))
    ended, claimed = encode({"kind": "end", "state": "done"}), encode({"kind": "claim", "session": "x"})
    job = sweeps.load(store, "s")
    for index in range(runs - 20):
        run = job.run_id(index)
        store.put(layout.log_entry("s", run, 1), claimed)
        store.put(layout.log_entry("s", run, 2), ended)
        store.put(layout.end("s", run, 2), ended)
    for n in range(workers):
        heartbeats.beat(store, f"w{n:05d}", 1, {})
    worker = Finder(store, Claimant("w00000"), TIMING, lambda: now, rng=random.Random(1))
    worker.find(lambda ask: True, lambda ask: True, whole=True)
    asked: list[str] = []
    store.before = lambda operation, key: asked.append(f"{operation} {key}")
    for _ in range(10):
        now += 2 * TIMING.lease
        taken = worker.find(lambda ask: True, lambda ask: True).taken
        assert taken is not None
        taken.attempt.end("done")
    return sum(request in ("list sweeps/s/log/", "list sweeps/s/ends/") for request in asked)


def test_worker_of_a_large_fleet_rarely_goes_through_ended_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "WHOLE", 7_500)
    assert lists_of_ten_claims(1, 1_500) >= 10 * 5  # alone it does in every lease
    assert lists_of_ten_claims(50, 1_500) <= 10 * 2 + 3 * 3


def test_reopened_run_is_found_in_a_large_fleet_by_whoever_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finder, "WHOLE", 1)
    store, now = MemoryStore(), 0.0
    sweeps.submit(store, replace(JOB, runs=tuple({"i": i} for i in range(3))))
    first = RunKey("s", sweeps.load(store, "s").run_id(0))
    for n in range(4):
        heartbeats.beat(store, f"w{n}", 1, {})
    chance = Draws()
    worker = Finder(store, Claimant("w0"), TIMING, lambda: now, rng=chance)
    control.kill(store, first)
    assert worker.find(lambda ask: True, lambda ask: True).taken
    worker.find(lambda ask: False, lambda ask: True, whole=True)
    control.resume(store, first)
    for drawn, queued in ((0.9, 1), (0.01, 2)):
        now, chance.next = now + TIMING.lease, drawn
        assert worker.find(lambda ask: False, lambda ask: True).takeable == queued


class Draws(random.Random):
    next = 0.9

    def random(self) -> float:
        return self.next


class Starting:
    """A worker that has just come: it beats once, and takes run after run."""

    def __init__(self, store: MemoryStore, session: str, clock: Callable[[], float]) -> None:
        heartbeats.beat(store, session, 1, {})
        self._finder = Finder(store, Claimant(session), TIMING, clock, rng=random.Random(1))

    def take(self) -> None:
        taken = self._finder.find(lambda ask: True, lambda ask: True).taken
        assert taken is not None
        taken.attempt.end("done")


def test_workers_that_start_together_rarely_reach_for_one_run() -> None:
    store, now = MemoryStore(clock=lambda: now), 0.0
    sweeps.submit(store, replace(JOB, runs=tuple({"i": i} for i in range(400))))
    claims: Counter[str] = Counter()
    asked: Counter[str] = Counter()

    def count(operation: str, key: str) -> None:
        asked[f"{operation} {key}"] += 1
        claims[key] += operation == "put" and key.endswith("-000001.json")

    workers = list[Starting]()
    store.before = count
    for _ in range(4):  # each sees those before it alone
        workers.append(Starting(store, f"w{len(workers)}", lambda: now))
        workers[-1].take()
    for _ in range(60):
        now += TIMING.beat / 80
        for worker in workers:
            worker.take()
    assert now < TIMING.beat
    lost = claims.total() - sum(1 for key in claims if claims[key])
    assert lost < 40  # most of them within the first second
    assert asked["list alive/"] < 4 * (1 + now / TIMING.fresh)
