"""When a heartbeat stands still, when it beats, and when nobody can tell."""

from __future__ import annotations

from hostler.records.run.heartbeats import Watch


def watched(*reads: tuple[float, str]) -> tuple[bool, bool]:
    """(stale, beating) of one session after these reads of its etag."""
    watch, stale = Watch(lease=8.0), set[str]()
    for stamp, etag in reads:
        stale = watch.observe(stamp, {"s": etag} if etag else {}, ["s"])
    return "s" in stale, "s" in watch.beating


def still(since: float, to: float, etag: str = "a") -> list[tuple[float, str]]:
    return [(float(t), etag) for t in range(int(since), int(to) + 1)]


def test_one_look_tells_nothing() -> None:
    assert watched((0, "a")) == (False, False)


def test_an_etag_seen_to_change_beats() -> None:
    assert watched((0, "a"), (1, "b")) == (False, True)


def test_still_beat_is_unknown_after_half_a_lease_then_stale() -> None:
    begin = [(0.0, "a"), (1.0, "b")]
    assert watched(*begin, *still(2, 4, "b")) == (False, True)
    assert watched(*begin, *still(2, 5, "b")) == (False, False)
    assert watched(*begin, *still(2, 9, "b")) == (True, False)


def test_a_heartbeat_that_was_never_seen_stands_still() -> None:
    assert watched(*still(0, 7, "")) == (False, False)
    assert watched(*still(0, 8, "")) == (True, False)


def test_one_that_was_taken_away_does_not_beat() -> None:
    assert watched((0, "a"), (1, "")) == (False, False)


def test_a_watcher_that_was_frozen_begins_anew() -> None:
    assert watched((0, "a"), (1, "b"), (50, "b")) == (False, False)
    assert watched((0, "a"), (50, "b")) == (False, False)
