from __future__ import annotations

from pathlib import Path

import pytest

from hostler.store.memory import PAGE, MemoryStore


def test_every_request_asks_the_hook_first(tmp_path: Path) -> None:
    store, seen = MemoryStore(), []
    store.before = lambda operation, key: seen.append((operation, key))
    store.put("k", b"x")
    store.get("k")
    store.download("k", tmp_path / "f")
    store.upload(tmp_path / "f", "l")
    list(store.list("k"))
    store.delete("k", "l")
    assert seen == [
        ("put", "k"),
        ("get", "k"),
        ("download", "k"),
        ("upload", "l"),
        ("list", "k"),
        ("delete", "k"),
        ("delete", "l"),
    ]


def test_a_hook_that_raises_stops_the_request() -> None:
    store = MemoryStore()

    def stop(operation: str, key: str) -> None:
        raise InterruptedError(key)

    store.before = stop
    with pytest.raises(InterruptedError):
        store.put("k", b"x")
    store.before = None
    assert list(store.list("")) == []


def test_listing_asks_for_pages_as_they_are_read() -> None:
    store, asked = MemoryStore(), []
    for n in range(PAGE + 5):
        store.put(f"{n:06d}", b"")
    store.before = lambda operation, key: asked.append(operation)
    rows = store.list("")
    assert next(rows).key == "000000"
    assert asked == ["list"]
    assert len(list(rows)) == PAGE + 4
    assert asked == ["list", "list"]


def test_time_is_the_given_clocks() -> None:
    store = MemoryStore(clock=lambda: 12.5)
    store.put("k", b"")
    assert [row.modified for row in store.list("")] == [12.5]
