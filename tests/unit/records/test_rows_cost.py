"""What `status` costs in requests, and that it tells the truth with so few."""

from __future__ import annotations

from collections import Counter

from hostler.records.rows import rows
from hostler.records.run import control, heartbeats, log
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.store.memory import MemoryStore

COUNT = 20


def sweep(store: MemoryStore) -> list[RunKey]:
    job = Job(name="s", command=("true",), runs=tuple({"n": n} for n in range(COUNT)))
    sweeps.submit(store, job)
    return [RunKey("s", run) for run in sweeps.run_ids(job)]


def append(store: MemoryStore, key: RunKey, **entry: object) -> None:
    assert RunLog(store, key).read_on().append(dict(entry))


def test_an_ended_run_costs_one_read() -> None:
    store = MemoryStore()
    for key in sweep(store):
        append(store, key, kind=log.CLAIM, session="w")
        append(store, key, kind=log.END, state="done", metrics={"loss": {"last": 1.0}}, attempts=1)
    asked: Counter[str] = Counter()
    store.before = lambda operation, key: asked.update([operation])
    found = rows(store)
    assert {row.state for row in found} == {"done"} and found[3].metrics == {"loss": 1.0}
    assert asked["get"] == COUNT + 1  # and the sweep's spec
    assert asked["list"] < 8


def test_states_are_those_of_the_log() -> None:
    store = MemoryStore()
    keys = sweep(store)
    append(store, keys[0], kind=log.CLAIM, session="w", host="h")
    heartbeats.beat(store, "w", 1, {"runs": {keys[0].run: {"step": 7, "metrics": {"loss": 0.5}}}})
    append(store, keys[1], kind=log.CLAIM, session="gone")
    control.stop(store, keys[2])
    control.stop(store, keys[3])
    control.resume(store, keys[3])
    found = rows(store)
    assert [row.state for row in found[:5]] == ["running", "running", "stopped", "queued", "queued"]
    assert (found[0].step, found[0].metrics, found[0].stale) == (7, {"loss": 0.5}, False)
    assert found[1].stale
