from __future__ import annotations

from hostler.records.run.history import events, ordinal, tries


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


def test_attempts_are_counted_from_one_whatever_is_between() -> None:
    log = [claim(1), {"kind": "release", "at": 2.0}, claim(3), {"kind": "stop-request", "at": 4.0}, claim(9)]
    assert [(one.number, one.ordinal) for one in tries(log)] == [(1, 1), (3, 2), (5, 3)]
    assert [ordinal(log, one.number) for one in tries(log)] == [1, 2, 3]


def test_lost_attempt_lasted_until_its_last_heartbeat() -> None:
    first, _ = tries([claim(1), {**claim(100), "after": {"why": "lost", "seconds": 7.0}}])
    assert (first.outcome, first.seconds) == ("lost", 7.0)


def test_attempt_killed_by_its_platform_has_its_failure() -> None:
    failure = {"kind": "disk-full", "message": "more disk than it was given"}
    after = {"why": "disk-full", "counts": "failures", "failure": failure}
    first, second = tries([claim(1), {**claim(100), "after": after}])
    assert (first.words, first.failure, second.failure) == ("disk-full", failure, None)


def test_entries_without_a_time_are_shown_without_one() -> None:
    log = [claim(1) | {"at": None}, {"kind": "stop-request", "at": None, "reason": "person"}]
    assert [one.started for one in tries(log)] == [0.0] and [one.at for one in events(log)] == [0.0]
