"""A launch that is closed gets no more sweeps; one of submitter and worker always sees the other."""

from __future__ import annotations

from itertools import combinations

from hostler.records.launch import closing
from hostler.store.memory import MemoryStore


def test_closed_launch_serves_the_runs_it_was_given_before() -> None:
    store = MemoryStore()
    assert closing.serve(store, "burst", 1, ["a", "b"])
    assert closing.served(store, "burst", 1) == ["a", "b"]
    closing.close(store, "burst", 1)
    closing.close(store, "burst", 1)
    assert closing.is_closed(store, "burst", 1) and not closing.is_closed(store, "burst", 2)
    assert not closing.serve(store, "burst", 1, ["c"])


def test_however_submitter_and_last_worker_interleave_one_sees_the_other() -> None:
    """Two steps each: the submitter gives, then looks; the worker closes, then looks."""
    for mine in combinations(range(4), 2):
        store, seen = MemoryStore(), dict[str, bool]()
        gives = iter(
            [
                lambda store=store: closing.serve(store, "burst", 1, ["late"]),
                lambda store=store: closing.is_closed(store, "burst", 1),
            ]
        )
        closes = iter(
            [
                lambda store=store: closing.close(store, "burst", 1),
                lambda store=store: "late" in closing.served(store, "burst", 1),
            ]
        )
        for step in range(4):
            who, steps = ("submitter", gives) if step in mine else ("worker", closes)
            seen[who] = bool(next(steps)())
        assert seen["submitter"] or seen["worker"]


def test_a_launch_has_the_shape_that_it_was_given_first() -> None:
    store = MemoryStore()
    assert closing.has_shape(store, "burst", 1, "small")
    assert closing.has_shape(store, "burst", 1, "small")
    assert not closing.has_shape(store, "burst", 1, "large")
