"""Somebody looks, and workers send more often."""

from __future__ import annotations

from hostler.errors import StoreError, StoreUnreachable
from hostler.records import interest
from hostler.records.interest import STILL, Interest, Looking
from hostler.store.memory import MemoryStore


def test_marker_is_seen_at_the_next_look_until_withdrawn() -> None:
    store, seen = MemoryStore(), Interest()
    assert not seen.look(store, 0.0)
    interest.show(store)
    assert seen.look(store, 1.0)
    interest.withdraw(store)
    assert not seen.look(store, 2.0)


def test_abandoned_marker_means_nothing_after_a_while() -> None:
    store, seen = MemoryStore(), Interest()
    interest.show(store)
    assert seen.look(store, 100.0)
    assert seen.look(store, 100.0 + STILL - 1)
    assert not seen.look(store, 100.0 + STILL)
    interest.show(store)
    assert seen.look(store, 101.0 + STILL)


def test_a_store_that_does_not_answer_changes_nothing() -> None:
    store, seen = MemoryStore(), Interest()
    interest.show(store)
    seen.look(store, 0.0)

    def refuse(op: str, key: str) -> None:
        raise StoreUnreachable("no")

    store.before = refuse
    assert seen.look(store, 1.0)


def test_follower_marks_every_few_seconds_and_stops_when_it_leaves() -> None:
    store, now, puts = MemoryStore(), [0.0], list[str]()
    store.before = lambda op, key: puts.append(op) if op == "put" else None
    with Looking(store, lambda: now[0]) as looking:
        for second in range(12):
            now[0] = float(second)
            looking.look()
        assert len(puts) == 3 and Interest().look(store, 0.0)
    assert not Interest().look(store, 0.0)


def test_read_only_store_can_be_followed_without_a_marker() -> None:
    store, now, asked = MemoryStore(), [0.0], list[str]()

    def refuse(op: str, key: str) -> None:
        asked.append(op)
        raise StoreError("read only")

    store.before = refuse
    with Looking(store, lambda: now[0]) as looking:
        for second in range(20):
            now[0] = float(second)
            looking.look()
    assert asked == ["put", "delete"]
