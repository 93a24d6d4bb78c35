"""What a holder may still write, whoever else reads or writes its log."""

from __future__ import annotations

import pytest

from hostler.errors import Fenced, StoreUnreachable
from hostler.records import layout, log
from hostler.records.attempt import Attempt, claim
from hostler.records.log import RunKey, RunLog
from hostler.records.state import fold
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
    attempt = claim(store, run_log, 60.0, lambda: 0.0, session="a")
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
def test_an_end_whose_answer_was_lost_is_ours_when_it_is_written_again(looks: bool) -> None:
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


def test_an_end_whose_copy_failed_is_not_written_again_after_a_reopen() -> None:
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
