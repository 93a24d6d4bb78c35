from __future__ import annotations

import math

from hostler.records.run.log import RunKey
from hostler.records.sweep import rungs
from hostler.records.sweep.rungs import RungReader
from hostler.store.memory import MemoryStore

A, B = RunKey("s", "0000000-s-aaaaaa"), RunKey("s", "0000001-s-bbbbbb")


def test_values_are_found_by_level_and_run() -> None:
    store = MemoryStore()
    rungs.write(store, A, 1, 0.5, 1, 1)
    rungs.write(store, A, 3, 0.7, 3, 1)
    rungs.write(store, B, 1, 0.2, 1, 1)
    assert RungReader(store, "s").update() == {1: {A.run: 0.5, B.run: 0.2}, 3: {A.run: 0.7}}


def test_what_a_run_wrote_first_stands() -> None:
    store = MemoryStore()
    rungs.write(store, A, 1, 0.5, 1, 1)
    rungs.write(store, A, 1, 0.9, 1, 3)
    assert RungReader(store, "s").update() == {1: {A.run: 0.5}}


def test_levels_are_numbers_however_many_digits_they_have() -> None:
    store = MemoryStore()
    rungs.write(store, A, 1_000_000, 0.5, 1_000_000, 1)
    rungs.write(store, A, 9, 0.5, 9, 1)
    assert sorted(RungReader(store, "s").update()) == [9, 1_000_000]


def test_what_is_not_a_number_is_kept_as_that() -> None:
    store = MemoryStore()
    rungs.write(store, A, 1, math.nan, 1, 1)
    assert math.isnan(RungReader(store, "s").update()[1][A.run])


def test_a_value_is_read_once() -> None:
    store = MemoryStore()
    rungs.write(store, A, 1, 0.5, 1, 1)
    reader = RungReader(store, "s")
    reader.update()
    gets: list[str] = []
    store.before = lambda op, key: gets.append(key) if op == "get" else None
    assert reader.update() == {1: {A.run: 0.5}}
    assert not gets
