"""What a holder may still write, whoever else reads or writes its log."""

from __future__ import annotations

import pytest

from hostler.errors import Fenced, StoreUnreachable
from hostler.records import layout
from hostler.records.run import log
from hostler.records.run.attempt import Attempt, claim
from hostler.records.run.entries import Claim
from hostler.records.run.log import RunKey, RunLog
from hostler.records.run.state import fold
from hostler.store.memory import MemoryStore

KEY = RunKey("s", "0000000-s-abc")


class Forgetful(MemoryStore):
    """Stores, and then says that it did not answer."""

    forgets = 0

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        done = super().put(key, data, if_absent=if_absent)
        if self.forgets:
            self.forgets -= 1
            raise StoreUnreachable("no answer")
        return done


def taken(store: MemoryStore, run_log: RunLog | None = None) -> Attempt:
    run_log = run_log or RunLog(store, KEY).read_on()
    attempt = claim(store, run_log, 60.0, lambda: 0.0, Claim("a"))
    assert attempt is not None
    return attempt


def test_what_another_reader_in_this_process_saw_still_fences() -> None:
    store = MemoryStore()
    shared = RunLog(store, KEY)
    attempt = taken(store, shared)
    assert RunLog(store, KEY).read_on().append({"kind": log.CLAIM, "session": "b"})
    shared.read_on()
    with pytest.raises(Fenced):
        attempt.end("done")
    assert [e["kind"] for e in RunLog(store, KEY).read_on().entries] == [log.CLAIM, log.CLAIM]


def test_a_stop_request_that_another_reader_saw_is_still_heard() -> None:
    store = MemoryStore()
    shared = RunLog(store, KEY)
    attempt = taken(store, shared)
    assert RunLog(store, KEY).read_on().append({"kind": log.STOP_REQUEST, "reason": "person"})
    shared.read_on()
    assert attempt.look() == "person"


@pytest.mark.parametrize("looks", [False, True])
def test_end_with_a_lost_answer_is_ours_when_written_again(looks: bool) -> None:
    store = Forgetful()
    attempt = taken(store)
    store.forgets = 1
    with pytest.raises(StoreUnreachable):
        attempt.end("done")
    if looks:
        attempt.look()
    attempt.end("done")
    entries = RunLog(store, KEY).read_on().entries
    assert [e["kind"] for e in entries] == [log.CLAIM, log.END]
    assert [e.key for e in store.list(layout.ends("s"))] == [layout.end("s", KEY.run, 2)]


def test_end_whose_copy_failed_is_not_rewritten_after_a_reopen() -> None:
    store = Forgetful()
    attempt = taken(store)
    store.forgets = 1
    with pytest.raises(StoreUnreachable):
        attempt.end("done")
    other = RunLog(store, KEY).read_on()
    assert other.append({"kind": log.REOPEN})
    attempt.look()
    attempt.end("done")
    entries = RunLog(store, KEY).read_on().entries
    assert [e["kind"] for e in entries] == [log.CLAIM, log.END, log.REOPEN]
    assert fold(entries).state == "queued"


def test_after_a_takeover_nothing_is_appended() -> None:
    store = MemoryStore()
    attempt = taken(store)
    assert RunLog(store, KEY).read_on().append({"kind": log.CLAIM, "session": "b"})
    for write in (
        attempt.look,
        attempt.guard,
        lambda: attempt.end("done"),
        lambda: attempt.release(then="queued"),
    ):
        with pytest.raises(Fenced):
            write()


def test_holder_looks_again_only_after_half_a_lease() -> None:
    store, now = MemoryStore(), [0.0]
    attempt = claim(store, RunLog(store, KEY), 60.0, lambda: now[0], Claim("a"))
    assert attempt is not None
    asked: list[str] = []
    store.before = lambda operation, key: asked.append(operation)
    for now[0] in (10.0, 29.9):
        attempt.guard()
    assert asked == []
    now[0] = 30.0
    attempt.guard()
    attempt.guard()
    assert asked == ["get"]
    store.before = None
    assert RunLog(store, KEY).read_on().append({"kind": log.CLAIM, "session": "b"})
    now[0] = 59.0
    attempt.guard()
    now[0] = 60.0
    with pytest.raises(Fenced):
        attempt.guard()


def test_look_that_failed_half_way_does_not_hide_a_takeover() -> None:
    store = MemoryStore()
    attempt = taken(store)
    other = RunLog(store, KEY).read_on()
    assert other.append({"kind": log.CLAIM, "session": "b"})

    def breaks(operation: str, key: str) -> None:
        if key == layout.log_entry("s", KEY.run, 3):
            raise StoreUnreachable("no answer")

    store.before = breaks
    with pytest.raises(StoreUnreachable):
        attempt.look()
    store.before = None
    with pytest.raises(Fenced):
        attempt.end("done")
    assert RunLog(store, KEY).read_on().head == 2


@pytest.mark.parametrize("kind", [log.CLAIM, log.RELEASE, log.REOPEN])
def test_whatever_another_appended_but_a_stop_request_fences(kind: str) -> None:
    store = MemoryStore()
    attempt = taken(store)
    assert RunLog(store, KEY).read_on().append({"kind": kind})
    with pytest.raises(Fenced):
        attempt.look()
    with pytest.raises(Fenced):
        attempt.guard()


def stop_request(store: MemoryStore, reason: str) -> None:
    assert RunLog(store, KEY).read_on().append({"kind": log.STOP_REQUEST, "reason": reason})


@pytest.mark.parametrize("seen", [False, True])
@pytest.mark.parametrize(("reason", "state"), [("person", "stopped"), ("pause", "paused"), ("cap", "paused")])
def test_a_run_is_not_given_back_over_a_stop_request(seen: bool, reason: str, state: str) -> None:
    store = MemoryStore()
    attempt = taken(store)
    stop_request(store, reason)
    if seen:
        assert attempt.look() == reason
    attempt.release(then="queued", why="preempted")
    assert attempt.state.state == state
    ends = [entry.key for entry in store.list(layout.ends("s"))]
    assert ends == ([layout.end("s", KEY.run, 3)] if state == "stopped" else [])


def test_what_was_done_when_the_stop_request_came_is_done() -> None:
    store = MemoryStore()
    attempt = taken(store)
    stop_request(store, "person")
    attempt.end("done")
    assert fold(RunLog(store, KEY).read_on().entries).state == "done"


def test_an_attempt_that_is_closed_asks_nothing_more() -> None:
    store = MemoryStore()
    attempt = taken(store)
    attempt.release(then="queued")
    assert attempt.look() is None
    with pytest.raises(Fenced):
        attempt.guard()
    assert taken(store).number == 3


def test_of_two_claims_one_stands() -> None:
    store = MemoryStore()
    logs = [RunLog(store, KEY), RunLog(store, KEY)]
    found = [claim(store, each, 60.0, lambda: 0.0, Claim("x")) for each in logs]
    assert [attempt is not None for attempt in found] == [True, False]
