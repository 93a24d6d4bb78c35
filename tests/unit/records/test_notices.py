from __future__ import annotations

import threading
from typing import Any

import pytest

from hostler.records import layout
from hostler.records.sweep import notices
from hostler.records.sweep.notices import NoticeEvent, decide, is_quiet, settle
from hostler.spec.job import Notify
from hostler.store import open_store

ONE, TWO = NoticeEvent("a/over/1", "finished", "a is over"), NoticeEvent("b/over/1", "finished", "b is over")
NOON = 12 * 60


def entry(event: NoticeEvent, *, sent: bool, at: float) -> dict[str, Any]:
    return {"id": event.id, "sent": sent, "lines": [event.text], "at": at}


def test_an_event_that_was_told_is_not_told_again() -> None:
    assert decide([entry(ONE, sent=True, at=0.0)], ONE, Notify(), 10.0, NOON) is None
    held = decide([entry(ONE, sent=False, at=0.0)], ONE, Notify(), 10.0, NOON)
    assert held is not None and held["lines"] == ["a is over"]  # it was held, and is told now
    assert decide([entry(ONE, sent=False, at=0.0), held], ONE, Notify(), 10.0, NOON) is None


def test_notice_over_the_limit_is_held_for_the_next_message() -> None:
    known = [entry(ONE, sent=True, at=0.0)]
    held = decide(known, TWO, Notify(limit=1), 100.0, NOON)
    assert held is not None and not held["sent"]
    assert decide([*known, held], None, Notify(limit=1), 200.0, NOON) is None
    later = decide([*known, held], None, Notify(limit=1), 3700.0, NOON)
    assert later is not None and later["sent"] and later["lines"] == ["b is over"]
    assert decide([*known, held, later], None, Notify(limit=9), 3800.0, NOON) is None
    three = NoticeEvent("c", "failed", "c failed")
    both = decide([*known, held], three, Notify(limit=1), 3700.0, NOON)
    assert both is not None and both["lines"] == ["c failed", "b is over"]


def test_notice_held_for_some_people_is_not_told_to_others() -> None:
    quiet, other = Notify(("TEAM",), quiet="22:00-07:00"), Notify(("BOSS",))
    held = decide([], ONE, quiet, 0.0, 23 * 60)
    assert held is not None and not held["sent"]
    told = decide([held], TWO, other, 10.0, 23 * 60)
    assert told is not None and told["lines"] == ["b is over"]
    later = decide([held, told], None, quiet, 9 * 3600.0, 8 * 60)
    assert later is not None and later["lines"] == ["a is over"]
    assert decide([held, told, later], None, quiet, 9 * 3600.0, 8 * 60) is None


def test_quiet_hours_hold_it_back() -> None:
    held = decide([], ONE, Notify(quiet="22:00-07:00"), 0.0, 23 * 60)
    assert held is not None and not held["sent"]
    assert decide([held], None, Notify(quiet="22:00-07:00"), 0.0, 6 * 60) is None
    sent = decide([held], None, Notify(quiet="22:00-07:00"), 0.0, 7 * 60)
    assert sent is not None and sent["lines"] == ["a is over"]


@pytest.mark.parametrize(
    ("hours", "minutes", "quiet"),
    [("", 0, False), ("22:00-07:00", 0, True), ("22:00-07:00", 420, False), ("12:00-13:30", 809, True)],
)
def test_quiet_hours_may_pass_midnight(hours: str, minutes: int, quiet: bool) -> None:
    assert is_quiet(hours, minutes) is quiet


def test_of_many_that_tell_the_same_one_sends() -> None:
    store = open_store("memory:")
    sent: list[list[str]] = []
    threads = [
        threading.Thread(target=lambda: sent.append(settle(store, ONE, Notify(), 0.0, NOON)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(sent) == [[]] * 7 + [["a is over"]]
    assert [one.key for one in store.list(layout.NOTICES)] == [layout.notice(1)]
    assert notices.settle(store, TWO, Notify(), 1.0, NOON) == ["b is over"]
