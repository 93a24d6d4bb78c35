from __future__ import annotations

from hostler.records.run.history import events, tries


def claim(at: float, host: str = "a") -> dict[str, object]:
    return {"kind": "claim", "at": at, "host": host, "session": f"{host}-1"}


def test_a_claim_that_was_taken_over_is_a_lost_attempt() -> None:
    first, second = tries([claim(1), claim(9, "b")])
    assert (first.number, first.outcome, first.ended) == (1, "lost", 9)
    assert (second.number, second.host, second.outcome, second.ended) == (2, "b", "running", None)


def test_attempts_keep_the_numbers_of_their_claims() -> None:
    log = [
        claim(1),
        {"kind": "release", "at": 2, "then": "queued", "why": "preempted", "seconds": 1.0, "exit": 0},
        {"kind": "reopen", "at": 3, "by": "me"},
        claim(4),
        {"kind": "stop-request", "at": 5, "reason": "person"},
        {"kind": "end", "at": 6, "state": "stopped", "why": "person"},
    ]
    assert [(one.number, one.words) for one in tries(log)] == [(1, "preempted"), (4, "stopped")]
    assert [(one.number, one.what, one.by) for one in events(log)] == [
        (3, "queued again", "me"),
        (5, "asked to stop", ""),
    ]


def test_an_end_without_an_attempt_makes_none() -> None:
    assert tries([{"kind": "end", "at": 1, "state": "stopped", "attempt": 0}]) == []


def test_a_failure_is_told_by_its_kind() -> None:
    end = {
        "kind": "end",
        "at": 2,
        "state": "failed",
        "failure": {"kind": "memory", "message": "m"},
        "exit": -9,
    }
    (one,) = tries([claim(1), end])
    assert one.words == "failed: memory" and one.exit == -9
