"""Entry k is one writer's, however many try at once."""

from __future__ import annotations

import threading

from hostler.records.run.log import RunKey, RunLog
from hostler.store import Store

KEY = RunKey("s", "0000007-s-abc")


def test_a_log_is_read_in_order_and_never_again(store: Store) -> None:
    log = RunLog(store, KEY)
    assert [log.append({"kind": "claim", "n": n}) for n in range(3)] == [True] * 3
    assert [entry["n"] for entry in RunLog(store, KEY).read_on().entries] == [0, 1, 2]
    assert RunLog(store, KEY).read_to(2).head == 2
    assert KEY.index == 7


def test_who_was_slower_reads_what_stands_there(store: Store) -> None:
    first, second = RunLog(store, KEY), RunLog(store, KEY)
    assert first.append({"kind": "claim", "by": 1})
    assert not second.append({"kind": "claim", "by": 2})
    assert [entry["by"] for entry in second.entries] == [1]


def test_of_many_writers_exactly_one_wins_each_entry(store: Store) -> None:
    writers, entries = 6, 8
    won: list[list[int]] = [[] for _ in range(writers)]

    def write(me: int) -> None:
        log = RunLog(store, KEY)
        while log.head < entries:
            if log.append({"kind": "claim", "by": me}):
                won[me].append(log.head)

    threads = [threading.Thread(target=write, args=(me,)) for me in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(k for own in won for k in own) == [*range(1, entries + 1)]
    told = {k: entry["by"] for k, entry in enumerate(RunLog(store, KEY).read_on().entries, 1)}
    assert told == {k: me for me, own in enumerate(won) for k in own}


def test_a_copy_has_not_read_what_the_other_reads_on(store: Store) -> None:
    log = RunLog(store, KEY)
    log.append({"kind": "claim"})
    copy = log.copy()
    log.append({"kind": "release"})
    assert (copy.head, copy.read_on().head) == (1, 2)
