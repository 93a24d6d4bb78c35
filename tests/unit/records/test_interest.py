"""Somebody looks, and workers send more often."""

from __future__ import annotations

from hostler.errors import StoreUnreachable
from hostler.records import interest
from hostler.records.interest import STILL, Interest
from hostler.store.memory import MemoryStore


def test_a_marker_is_seen_with_the_next_look_and_gone_when_it_is_withdrawn() -> None:
    store, seen = MemoryStore(), Interest()
    assert not seen.look(store, 0.0)
    interest.show(store)
    assert seen.look(store, 1.0)
    interest.withdraw(store)
    assert not seen.look(store, 2.0)


def test_a_marker_that_was_left_behind_means_nothing_after_a_while() -> None:
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
