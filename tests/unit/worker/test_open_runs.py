"""Open runs sorted by who may take them, as one worker sees them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from hostler.records.run.log import RunKey
from hostler.records.run.state import RunState
from hostler.records.sweep.queue import OpenRun, Queue
from hostler.spec.job import Job, Resources
from hostler.store.memory import MemoryStore
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.open_runs import SortedRuns, by_urgency, sort_open
from hostler.worker.claim.session_watch import Sessions
from hostler.worker.claim.slots import Device, Offer, Placement, place

SMALL = Offer(cpus=8, memory=64, gpus=(Device("small", 16000),))
NONE = Offer(cpus=8, memory=64)
ME = Claimant("me", {"fleet": "gpus/3"})


def opened(run: str = "r", nodes: int = 1, priority: int = 0, **state: Any) -> tuple[Queue, OpenRun]:
    job = Job(name="s", command=("x",), resources=Resources(nodes=nodes), priority=priority)
    return Queue(MemoryStore(), job), OpenRun(RunKey("s", run), RunState(**state))


def held(session: str, **claim: Any) -> dict[str, Any]:
    return {"state": "running", "session": session, "claim": claim, "head": 1}


def counts(found: SortedRuns) -> dict[str, int]:
    return {name: n for name, value in vars(found).items() if (n := len(value) if name == "free" else value)}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        ({"state": "queued"}, {"free": 1}),
        ({"state": "paused"}, {"paused": 1}),
        (held("stale"), {"free": 1}),
        (held("me"), {"held": 1}),
        (held("beating"), {"unheld": 1}),
        (held("beating", restarts=True), {"held": 1}),
        (held("unknown", restarts=True), {"unheld": 1}),
        (held("silent", restarts=True), {"held": 1, "silent": 1}),
        (held("beating", restarts=True, fleet="gpus/3"), {"held": 1, "fellows": 1}),
        (held("beating", restarts=True, fleet="gpus/4"), {"held": 1}),
    ],
)
def test_each_state_is_counted_once(state: dict[str, Any], expected: dict[str, int]) -> None:
    sessions = Sessions(frozenset({"stale"}), frozenset({"beating", "silent"}), frozenset({"silent"}))
    found = sort_open([opened(**state)], ME, sessions, lambda ask: True)
    assert counts(found) == expected


def test_queued_run_that_never_fits_is_unfit() -> None:
    assert counts(sort_open([opened(state="queued")], ME, Sessions(), lambda ask: False)) == {"unfit": 1}


@pytest.mark.parametrize(("offer", "lacks"), [(SMALL, True), (replace(SMALL, cpus=2), False), (NONE, False)])
def test_run_asks_for_a_larger_gpu_only_where_that_helps(offer: Offer, lacks: bool) -> None:
    job = Job(name="s", command=("x",), resources=Resources(cpus=4, gpus=1))
    queue = Queue(MemoryStore(), job)
    run = OpenRun(RunKey("s", "r"), RunState(state="queued", outgrew=16000))

    def can_ever(ask: Resources) -> bool:
        return isinstance(place(offer, (), ask), Placement)

    found = sort_open([(queue, run)], ME, Sessions(), can_ever)
    assert (found.unfit, found.outgrown) == (1, ("r", 16000) if lacks else None)
    queue.job = replace(job, resources=job.resources.larger_than(16000))  # all of its sweep did
    assert sort_open([(queue, run)], ME, Sessions(), can_ever).outgrown == found.outgrown


def test_own_claim_that_is_not_carried_out_is_free() -> None:
    opens = [opened("kept", **held("me")), opened("dropped", **held("me"))]
    found = sort_open(opens, ME, Sessions(), lambda ask: True, mine={"kept"})
    assert [run.key.run for _, run in found.free] == ["dropped"] and found.held == 1


def test_gang_elsewhere_counts_only_if_it_fits() -> None:
    gang = opened(nodes=2, **held("beating"))
    assert sort_open([gang], ME, Sessions(), lambda ask: True).gangs == 1
    assert sort_open([gang], ME, Sessions(), lambda ask: False).gangs == 0
    assert sort_open([opened(nodes=2, **held("me"))], ME, Sessions(), lambda ask: True).gangs == 0


def test_urgent_sweeps_go_first_then_runs_somebody_had() -> None:
    runs = [opened("new"), opened("returned", head=2), opened("urgent", priority=1)]
    assert [run.key.run for _, run in by_urgency(runs)] == ["urgent", "returned", "new"]
