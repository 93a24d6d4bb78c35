"""Fleets against the request rates of a bucket: what they ask for is what a real finder asks for."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from hostler.records import layout
from hostler.records.body import encode
from hostler.records.run import heartbeats
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.simulate import request_rates
from hostler.simulate.request_rates import (
    GCS,
    S3,
    Scale,
    background,
    demand,
    last_looks,
    patient,
    reads_of_a_claim,
    trained,
)
from hostler.spec.job import Job
from hostler.store.memory import MemoryStore
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.finder import Finder

CLAIMS = 12


def reads_of_a_finder(workers: int, runs: int, length: float) -> float:
    """Reads for each claim of a real finder in the middle of a sweep, on a clock of its own."""
    store, now, timing = MemoryStore(clock=lambda: now), 0.0, Timing()
    job = Job(name="s", command=("x",), runs=tuple({"i": i} for i in range(runs)))
    sweeps.submit(store, job)
    ended, claimed = encode({"kind": "end", "state": "done"}), encode({"kind": "claim", "session": "x"})
    for index in range(runs // 2):
        run = job.run_id(index)
        store.put(layout.log_entry("s", run, 1), claimed)
        store.put(layout.log_entry("s", run, 2), ended)
        store.put(layout.end("s", run, 2), ended)
    for n in range(workers):
        heartbeats.beat(store, f"w{n:05d}", 1, {})
    finder = Finder(store, Claimant("w00000"), timing, lambda: now, rng=random.Random(1))
    finder.find(lambda ask: False, lambda ask: True, whole=True)  # its first look at everything
    asked: list[str] = []
    store.before = lambda operation, key: asked.append(operation)
    for _ in range(CLAIMS):
        now += length
        taken = finder.find(lambda ask: True, lambda ask: True).taken
        assert taken is not None
        taken.attempt.end("done")
    return (len(asked) - asked.count("put")) / CLAIMS


@pytest.mark.parametrize(
    ("runs", "length"), [(400, 0.2), (400, 5.0), (400, 30.0), (400, 600.0), (1_900, 600.0)]
)
def test_claims_ask_as_often_as_a_real_finder_does(runs: int, length: float) -> None:
    modelled = reads_of_a_claim(Scale(20, runs, length))
    assert reads_of_a_finder(20, runs, length) == pytest.approx(modelled, rel=0.2, abs=0.3)


def test_fleet_that_asks_for_little_trains_nearly_always() -> None:
    assert trained(Scale(1_000, 100_000, 600.0), S3) > 0.99


@pytest.mark.parametrize("workers", [400, 4_000])
def test_short_runs_come_as_fast_as_the_bucket_takes_writes(workers: int) -> None:
    scale = Scale(workers, 100 * workers, 0.5, logs=False)
    rates = replace(S3, writes=500.0, reads=1e9)
    room = rates.writes - background(scale)[1]
    runs_a_second = trained(scale, rates) * workers / scale.length
    assert runs_a_second * (1 + request_rates.ENDS) == pytest.approx(room, rel=0.15)


def test_heartbeats_beyond_what_a_bucket_takes_leave_no_room() -> None:
    scale = Scale(10_000, 1_000_000, 600.0)
    assert demand(scale)[1] > GCS.writes and trained(scale, GCS) == 0
    assert trained(patient(scale), GCS) > 0.95


def test_drawn_looks_keep_a_million_runs_within_the_rates() -> None:
    scale = Scale(10_000, 1_000_000, 600.0)
    assert trained(replace(scale, whole=float("inf")), S3) < 0.2
    assert trained(scale, S3) > 0.95


def test_last_looks_grow_with_workers_times_runs() -> None:
    small, large = Scale(1_000, 100_000, 600.0), Scale(10_000, 1_000_000, 600.0)
    assert last_looks(large, S3) == pytest.approx(100 * last_looks(small, S3))
    assert last_looks(Scale(1, 10_000, 600.0), S3) == pytest.approx(30 * S3.latency)
