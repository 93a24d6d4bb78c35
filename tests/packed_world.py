"""Random sweeps that are over, written by the real records, and all that a reader can see of them."""

from __future__ import annotations

import random
from typing import Any

from hostler.records import layout, rows
from hostler.records.packs.packed_store import PackedStore
from hostler.records.run import control, log, surroundings
from hostler.records.run.attempt import Attempt, claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import fold
from hostler.records.series import metrics, packing
from hostler.records.series.logs import LogReader, LogWriter
from hostler.records.series.metrics import MetricWriter, Origin
from hostler.records.series.points import Point
from hostler.records.sweep import queue, sweeps
from hostler.spec.job import Job
from hostler.store import Store

ENDS = ("done", "failed", "diverged", "stopped")


def no_wait(seconds: float) -> None:
    """In place of the pause before the first deletion."""


def submit(store: Store, count: int, name: str = "s") -> Job:
    job = Job(name=name, command=("x",), runs=tuple({"lr": n / 10} for n in range(count)), metric="a")
    assert sweeps.submit(store, job)
    return job


def take(store: Store, job: Job, index: int) -> Attempt:
    key = RunKey(job.name, job.run_id(index))
    held = claim(store, RunLog(store, key).read_on(), 60.0, lambda: 0.0, Claim("w", facts={"host": "h"}))
    assert held is not None
    return held


def train(store: Store, held: Attempt, luck: random.Random) -> None:
    """Points, output and surroundings of an attempt, in some fragments."""
    writer = MetricWriter(store, held.key.run, held.number)
    if held.number > 1:
        writer.continue_from(Origin(1, 1, 1) if luck.random() < 0.5 else None)
    said = LogWriter(store, held.key.run, held.number, luck.randrange(2))
    for n in range(luck.randrange(4)):
        writer.write([Point(n, float(n), {"a": luck.random(), "b": n})])
        said.write(f"step {n}\n".encode())
    if luck.random() < 0.3:
        writer.pack()
    if luck.random() < 0.5:
        surroundings.write(store, held.key.run, held.number, {"host": "h", "n": luck.random()})


def live(store: Store, job: Job, index: int, luck: random.Random) -> list[Attempt]:
    """A run from its first claim to its last end: its attempts, those that were taken over among them."""
    key, held = RunKey(job.name, job.run_id(index)), list[Attempt]()
    while True:
        held.append(take(store, job, index))
        train(store, held[-1], luck)
        fate = luck.random()
        if fate < 0.2:
            continue  # it sleeps, and the next one claims over it
        if fate < 0.35:
            control.stop(store, key)
        if fate < 0.5:
            held[-1].release("queued", why="x", seconds=1.0)
        else:
            held[-1].end(luck.choice(ENDS), attempts=len(held), metrics={}, step=2)
        if not fold(RunLog(store, key).read_on().entries).ended:
            continue
        if luck.random() < 0.7:
            return held
        control.retry(store, key, fresh=luck.random() < 0.5) if luck.random() < 0.5 else control.resume(
            store, key
        )
        if fold(RunLog(store, key).read_on().entries).ended:
            return held


def random_sweep(store: Store, seed: int, count: int) -> Job:
    luck = random.Random(seed)
    job = submit(store, count)
    for index in range(count):
        live(store, job, index, luck)
    if luck.random() < 0.5:
        packing.compact(store, job, least=1)
    return job


def seen(store: Store, job: Job) -> dict[str, Any]:
    """All that readers see of a sweep."""
    heads = log.heads(store, job.name)
    found: dict[str, Any] = {
        "heads": heads,
        "rows": rows.rows(store, [job.name]),
        "open": queue.Queue(store, job).open(whole=True),
        "untouched": queue.Queue(store, job).glance(10),
        "ends": [entry.key for entry in store.list(layout.ends(job.name))],
    }
    for run, head in heads.items():
        key = RunKey(job.name, run)
        entries = RunLog(store, key).read_on().entries
        found[run] = {
            "head": log.head(store, key),
            "entries": entries,
            "points": metrics.read(store, run, head),
            "output": [(piece.attempt, piece.data) for piece in LogReader(store, run).read()],
            "facts": [surroundings.of_attempt(store, run, n, entries) for n in range(1, head + 1)],
            "sizes": [(e.key, e.size) for e in store.list(layout.run(run))],
            "log": [(e.key, store.get(e.key).data) for e in store.list(f"{layout.logs_of(job.name)}{run}-")],
        }
    return found


def fresh(store: Store | PackedStore) -> PackedStore:
    """The same store for somebody who knows nothing yet."""
    return PackedStore(store.inner if isinstance(store, PackedStore) else store)
