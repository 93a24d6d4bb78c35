from __future__ import annotations

import time

from hostler.records.rows import rows
from hostler.records.run.log import RunLog
from hostler.records.sweep import sweeps
from hostler.records.sweep.queue import Queue
from hostler.settings import Timing
from hostler.spec import spans
from hostler.spec.job import Job
from hostler.spec.rounds import Round
from hostler.spec.space import parse
from hostler.store.memory import MemoryStore
from hostler.worker.claim.claimant import Claimant, Scope
from hostler.worker.claim.finder import Finder


def sectioned(repeat: int = 2) -> Job:
    space = parse({"e": 1}, sections=[{"a": [1, 2]}, {"a": [7, 8, 9]}], repeat=repeat)
    return Job(
        name="s",
        command=("true",),
        method="grid",
        rounds=(Round(space, spans.whole(space.count), ("true",)),),
    )


def taken(store: MemoryStore, session: str, section: int) -> list[int]:
    said: list[str] = []
    finder = Finder(
        store, Claimant(session), Timing(), time.monotonic, Scope(section=section), say=said.append
    )
    found = []
    while one := finder.find(lambda ask: True, lambda ask: True).taken:
        found.append(one.attempt.key.index)
        one.attempt.end("done")
    return sorted(found)


def test_worker_of_a_section_takes_its_runs_and_no_others() -> None:
    store = MemoryStore()
    sweeps.submit(store, sectioned())
    assert taken(store, "w2", 2) == [2, 3, 4, 7, 8, 9]
    assert taken(store, "w1", 1) == [0, 1, 5, 6]
    assert taken(store, "w0", 0) == []


def test_section_worker_ignores_other_runs_and_leaves_when_done() -> None:
    store = MemoryStore()
    job = sectioned(1)
    sweeps.submit(store, job)
    finder = Finder(store, Claimant("w1"), Timing(), time.monotonic)
    other = finder.find(lambda ask: True, lambda ask: True).taken
    assert other is not None
    mine = 2 if job.section(other.attempt.key.index) == 1 else 1
    taken(store, "w2", mine)
    found = Finder(store, Claimant("w3"), Timing(), time.monotonic, Scope(section=mine)).find(
        lambda ask: True, lambda ask: True, whole=True
    )
    assert (found.taken, found.open) == (None, 0)


def test_a_section_that_is_not_there_is_said() -> None:
    store = MemoryStore()
    sweeps.submit(store, sectioned())
    said: list[str] = []
    finder = Finder(store, Claimant("w"), Timing(), time.monotonic, Scope(section=9), say=said.append)
    assert finder.find(lambda ask: True, lambda ask: True).taken is None
    assert said == ["s has no section 9"]


def test_lost_run_is_open_only_in_its_own_section() -> None:
    store = MemoryStore()
    job = sectioned(1)
    sweeps.submit(store, job)
    queue = Queue(store, job, job.outside(1))
    for index in (0, 3):
        RunLog(store, queue.run(index).key).append({"kind": "claim", "session": "gone"})
    assert [run.key.index for run in queue.open(whole=True)] == [0, 1]


def test_rows_know_their_section() -> None:
    store = MemoryStore()
    sweeps.submit(store, sectioned())
    assert [row.section for row in rows(store)] == [1, 1, 2, 2, 2] * 2
