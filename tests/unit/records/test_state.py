"""What a log means: every kind of entry, in every state it may follow."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostler.records.run.state import Tally, fold
from hostler.spec import states

Entry = dict[str, Any]

CLAIM: Entry = {"kind": "claim", "session": "s1", "host": "h1", "at": 10.0}
RELEASE: Entry = {"kind": "release", "then": "queued"}
PAUSE: Entry = {"kind": "release", "then": "paused"}
STOP: Entry = {"kind": "stop-request", "reason": "person"}
DONE: Entry = {"kind": "end", "state": "done"}
FAILED: Entry = {"kind": "end", "state": "failed", "failure": {"message": "no"}}
STOPPED: Entry = {"kind": "end", "state": "stopped"}
REOPEN: Entry = {"kind": "reopen"}
FRESH: Entry = {"kind": "reopen", "fresh": True}


@pytest.mark.parametrize(
    ("entries", "state"),
    [
        ([], "queued"),
        ([CLAIM], "running"),
        ([CLAIM, CLAIM], "running"),
        ([CLAIM, RELEASE], "queued"),
        ([CLAIM, PAUSE], "paused"),
        ([PAUSE], "paused"),
        ([CLAIM, STOP], "running"),
        ([CLAIM, STOP, CLAIM], "running"),
        ([CLAIM, STOP, STOPPED], "stopped"),
        ([CLAIM, DONE], "done"),
        ([CLAIM, FAILED], "failed"),
        ([STOPPED], "stopped"),
        ([STOPPED, REOPEN], "queued"),
        ([CLAIM, PAUSE, REOPEN], "queued"),
        ([CLAIM, FAILED, REOPEN, CLAIM], "running"),
        ([CLAIM, FAILED, REOPEN, CLAIM, DONE], "done"),
    ],
)
def test_the_state_after_these_entries(entries: list[Entry], state: str) -> None:
    found = fold(entries)
    assert (found.state, found.head) == (state, len(entries))
    assert found.ended == (state in states.ENDED) == (found.end is not None)
    assert (found.session is not None) == (state == "running")


def test_a_claims_number_is_its_attempts_and_claims_are_counted() -> None:
    found = fold([CLAIM, RELEASE, CLAIM, STOP, {**CLAIM, "host": "h2", "at": 30.0}])
    assert (found.attempt, found.attempts, found.host, found.first, found.since) == (5, 3, "h2", 10.0, 30.0)


def test_a_stop_request_stands_until_it_is_answered() -> None:
    assert fold([CLAIM, STOP]).stop == "person"
    for answer in (RELEASE, DONE, STOPPED):
        assert fold([CLAIM, STOP, answer]).stop is None


@pytest.mark.parametrize("against", ["failures", "tempfail", "lost"])
def test_attempt_without_a_save_counts_and_one_with_clears_all(against: str) -> None:
    bad, good = {**RELEASE, "counts": against}, {**RELEASE, "counts": against, "progress": True}
    assert getattr(fold([CLAIM, bad, CLAIM, bad]).tally, against) == 2
    assert fold([CLAIM, bad, CLAIM, bad, CLAIM, good]).tally == Tally()


def test_a_preempted_attempt_counts_against_nothing() -> None:
    bad = {**RELEASE, "counts": "failures"}
    assert fold([CLAIM, bad, CLAIM, {**RELEASE, "why": "preempted"}]).tally.failures == 1


def test_a_claim_tells_of_the_lost_attempt_before_it() -> None:
    over = {**CLAIM, "after": {"counts": "lost", "progress": False}}
    assert fold([CLAIM, over, over]).tally.lost == 2
    assert fold([CLAIM, over, {**CLAIM, "after": {"counts": "lost", "progress": True}}]).tally.lost == 0


def test_a_reopen_forgets_what_counted_and_what_was_suspected() -> None:
    bad = {**RELEASE, "counts": "failures", "suspect": True, "restored": "1-3", "seconds": 7.0}
    before = fold([CLAIM, bad, CLAIM, FAILED])
    assert (before.tally.failures, before.suspects, before.seconds) == (1, {"1-3"}, 7.0)
    after = fold([CLAIM, bad, CLAIM, FAILED, REOPEN])
    assert (after.tally, after.suspects, after.seconds) == (Tally(), frozenset(), 0.0)
    assert after.failure == {"message": "no"}


def test_gpu_that_was_too_small_counts_until_a_reopen() -> None:
    small, larger = {**RELEASE, "outgrew": 16}, {**RELEASE, "outgrew": 40}
    assert fold([CLAIM, larger, CLAIM, small, CLAIM, RELEASE]).outgrew == 40
    assert fold([CLAIM, larger, CLAIM, FAILED, REOPEN]).outgrew == 0


def test_checkpoint_is_suspected_only_after_failure_without_a_save() -> None:
    bad = {**RELEASE, "suspect": True, "restored": "1-3"}
    assert fold([CLAIM, {**bad, "progress": True}]).suspects == frozenset()
    assert fold([CLAIM, {**bad, "suspect": False}]).suspects == frozenset()
    assert fold([CLAIM, {**bad, "restored": None}]).suspects == frozenset()


def test_a_fresh_start_holds_until_the_next_one() -> None:
    assert fold([CLAIM, FAILED, FRESH, CLAIM, FAILED, REOPEN]).fresh_from == 3


LEGAL = {
    "queued": [CLAIM, STOPPED, PAUSE],
    "paused": [REOPEN, STOPPED],
    "running": [CLAIM, RELEASE, PAUSE, STOP, DONE, FAILED, STOPPED],
    **{state: [REOPEN, FRESH] for state in states.ENDED},
}


@given(st.lists(st.integers(0, 6), max_size=30))
def test_every_log_of_legal_entries_has_a_state(choices: list[int]) -> None:
    entries: list[Entry] = []
    for choice in choices:
        now = fold(entries)
        legal = LEGAL[now.state]
        entries.append(legal[choice % len(legal)])
    now = fold(entries)
    assert now.state in states.ALL
    assert now.head == len(entries)
    assert now.attempts == sum(entry is CLAIM for entry in entries)


RUNG: Entry = {"kind": "release", "then": "paused", "why": "rung"}


def test_a_paused_run_knows_why_it_is() -> None:
    assert fold([CLAIM, RUNG]).paused_by == "rung"
    assert fold([CLAIM, {**RUNG, "why": "pause"}]).paused_by == "pause"
    assert fold([CLAIM, RUNG, CLAIM]).paused_by == ""
    assert fold([CLAIM, RELEASE]).paused_by == ""


def test_runs_promotion_outlives_its_attempts_but_not_a_fresh_start() -> None:
    promoted = [CLAIM, RUNG, {**CLAIM, "until": 9}]
    assert fold(promoted).until == 9
    assert fold([*promoted, RELEASE, CLAIM]).until == 9
    assert fold([*promoted, FAILED, FRESH]).until == 0


def test_run_resumed_by_a_person_is_freed_from_its_pruner() -> None:
    assert fold([CLAIM, RUNG, REOPEN]).freed
    assert fold([CLAIM, RUNG, REOPEN, CLAIM, RELEASE]).freed
    assert not fold([CLAIM, PAUSE, REOPEN]).freed
    assert not fold([CLAIM, FAILED, REOPEN]).freed


def test_time_of_all_attempts_counts_lost_and_reopened_ones() -> None:
    given_back = {**RELEASE, "seconds": 5.0}
    after = {"why": "lost", "counts": "lost", "attempt": 3, "progress": False, "seconds": 7.0}
    lost = fold([CLAIM, given_back, CLAIM, {**CLAIM, "after": after}])
    assert (lost.spent, lost.seconds) == (12.0, 5.0), "limits count what was given back alone"
    failed = [CLAIM, given_back, CLAIM, {**FAILED, "seconds": 2.0, "total": 7.0}]
    assert fold(failed).spent == 7.0
    again = fold([*failed, REOPEN, CLAIM])
    assert (again.spent, again.seconds) == (7.0, 0.0)
