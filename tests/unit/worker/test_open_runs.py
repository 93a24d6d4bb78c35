"""Open runs sorted by who may take them, as one worker sees them."""

from __future__ import annotations

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
