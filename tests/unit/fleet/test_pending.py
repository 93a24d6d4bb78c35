from __future__ import annotations

from hostler.fleet.pending import goes_on, pending
from hostler.records.rows import rows
from hostler.records.run import heartbeats
from hostler.records.run.attempt import Attempt, claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.sweep import rungs, sweeps
from hostler.records.sweep.journal import Journal, JournalEntry
from hostler.spec.job import Budget, Job, Objective
from hostler.store.memory import MemoryStore

LOSS = (Objective("loss", "min"),)


def take(store: MemoryStore, index: int) -> Attempt:
    job = sweeps.load(store, "s")
    attempt = claim(
        store, RunLog(store, RunKey("s", job.run_id(index))).read_on(), 60.0, lambda: 0.0, Claim()
    )
    assert attempt is not None
    return attempt


def pause(store: MemoryStore, index: int, level: int, loss: float) -> None:
    attempt = take(store, index)
    rungs.write(store, attempt.key, level, loss, level, attempt.number)
    attempt.release(then="paused", why="rung")


def test_search_wants_more_until_its_budget_is_journaled() -> None:
    store = MemoryStore()
    search = {"parameters": {"x": {"min": 0, "max": 1}}, "method": "tpe"}
    sweeps.submit(store, Job("s", ("x",), runs=(), search=search, objectives=LOSS, budget=Budget(runs=2)))
    assert pending(store, "s")
    for n in range(2):
        journal = Journal(store, "s")
        journal.read_on()
        journal.append(JournalEntry({"x": n}), 2)
    assert not pending(store, "s")


def test_a_halted_search_wants_nothing() -> None:
    store = MemoryStore()
    sweeps.submit(store, Job("s", ("x",), runs=(), search={"parameters": {}}, budget=Budget(runs=2)))
    sweeps.halt(store, "s", "enough")
    assert not pending(store, "s")


def test_paused_runs_are_awaited_while_one_will_resume() -> None:
    store = MemoryStore()
    job = Job("s", ("x",), runs=({"i": 0}, {"i": 1}), objectives=LOSS, prune={"method": "asha"})
    sweeps.submit(store, job)
    pause(store, 0, 1, 0.5)
    assert not pending(store, "s"), "the other one is queued: whoever waits sees that"
    pause(store, 1, 1, 0.1)
    assert pending(store, "s"), "the best of them goes on to its end"
    take(store, 1).end("failed")
    assert pending(store, "s"), "or else the other"
    take(store, 0).end("done")
    assert not pending(store, "s")


def test_grids_and_single_runs_want_nothing() -> None:
    store = MemoryStore()
    sweeps.submit(store, Job("s", ("x",)))
    assert not pending(store, "s")


def test_queued_runs_of_a_halted_sweep_are_not_waited_for() -> None:
    store = MemoryStore()
    sweeps.submit(store, Job("s", ("x",), runs=({"i": 0}, {"i": 1})))
    assert goes_on(store, rows(store, ["s"]))
    sweeps.halt(store, "s", "the same error 5 times in a row")
    assert not goes_on(store, rows(store, ["s"])), "nobody takes them"
    sweeps.lift(store, "s")
    assert goes_on(store, rows(store, ["s"]))


def test_a_search_without_a_run_is_waited_for() -> None:
    store = MemoryStore()
    search = {"parameters": {"x": {"min": 0, "max": 1}}, "method": "tpe"}
    sweeps.submit(store, Job("s", ("x",), runs=(), search=search, budget=Budget(hours=1)))
    assert goes_on(store, [], ["s"])
    sweeps.halt(store, "s", "enough")
    assert not goes_on(store, [], ["s"])


def test_capped_sweep_is_awaited_only_while_served() -> None:
    store = MemoryStore()
    sweeps.submit(store, Job("s", ("x",), runs=({"i": 0}, {"i": 1})))
    attempt = take(store, 0)
    assert goes_on(store, rows(store))
    attempt.release(then="paused", why="cap")
    assert not goes_on(store, rows(store), ["s"]), "the other run is queued, and all workers have gone"
    heartbeats.beat(store, "another", 1, {"only": ["s"]})
    assert goes_on(store, rows(store), ["s"])
