from __future__ import annotations

import threading
from collections import Counter

import pytest

from hostler.errors import NewerFormatError
from hostler.records import layout
from hostler.records.sweep.journal import Journal, JournalEntry
from hostler.store.memory import MemoryStore


def entry(n: int) -> JournalEntry:
    return JournalEntry({"lr": n}, {"lr": n}, {"generation": 0})


def test_an_entry_is_read_back_as_it_was_written() -> None:
    store = MemoryStore()
    assert Journal(store, "s").append(entry(7), None)
    assert Journal(store, "s").read_on() == [entry(7)]


def test_the_second_of_two_is_refused_and_knows_the_first() -> None:
    store = MemoryStore()
    one, other = Journal(store, "s"), Journal(store, "s")
    assert one.append(entry(1), None)
    assert not other.append(entry(2), None)
    assert other.entries == [entry(1)]
    assert other.append(entry(2), None)
    assert one.read_on() == [entry(1), entry(2)]


def test_no_entry_is_made_beyond_the_budget() -> None:
    store = MemoryStore()
    journal = Journal(store, "s")
    assert [journal.append(entry(n), 2) for n in range(3)] == [True, True, False]
    assert len(Journal(store, "s").read_on()) == 2


def test_whoever_has_not_read_on_cannot_overrun_the_budget() -> None:
    store = MemoryStore()
    late = Journal(store, "s")
    first = Journal(store, "s")
    for n in range(3):
        first.append(entry(n), 3)
    assert [late.append(entry(9), 3) for _ in range(5)] == [False] * 5
    assert Journal(store, "s").read_on() == [entry(n) for n in range(3)]


def test_many_entries_are_read_in_order() -> None:
    store = MemoryStore()
    journal = Journal(store, "s")
    for n in range(50):
        journal.append(entry(n), None)
    assert Journal(store, "s").read_on() == [entry(n) for n in range(50)]


def test_what_was_read_once_is_not_read_again() -> None:
    store = MemoryStore()
    writer, reader = Journal(store, "s"), Journal(store, "s")
    writer.append(entry(0), None)
    reader.read_on()
    writer.append(entry(1), None)
    asked: Counter[str] = Counter()
    store.before = lambda op, key: asked.update([f"{op} {key}"])
    reader.read_on()
    assert asked[f"get {layout.journal_entry('s', 1)}"] == 0
    assert asked[f"get {layout.journal_entry('s', 2)}"] == 1


def test_eight_askers_at_once_make_exactly_the_budget() -> None:
    store = MemoryStore()
    won: list[int] = []

    def ask(who: int) -> None:
        journal = Journal(store, "s")
        while len(journal.entries) < 40:
            if journal.append(JournalEntry({"by": who}), 40):
                won.append(len(journal.entries))

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(1, 41))
    assert len(Journal(store, "s").read_on()) == 40


def test_an_entry_of_a_newer_format_is_not_guessed_at() -> None:
    store = MemoryStore()
    store.put(layout.journal_entry("s", 1), b'{"format": 99}')
    with pytest.raises(NewerFormatError):
        Journal(store, "s").read_on()
