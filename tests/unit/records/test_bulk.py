from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from hostler.errors import DamagedError, MissingError, StoreError
from hostler.records import layout
from hostler.records.checkpoint import bulk
from hostler.store.base import NotFound
from hostler.store.memory import MemoryStore


class Counting(MemoryStore):
    """Remembers what was put, and fails at the part that it is told to."""

    def __init__(self, fails_at: int = -1) -> None:
        super().__init__()
        self.sent, self.fails_at = list[str](), fails_at

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        if f".parts/{self.fails_at:06d}-" in key:
            raise StoreError("the line is cut")
        self.sent.append(key)
        return super().put(key, data, if_absent=if_absent)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "WHOLE", 100)
    monkeypatch.setattr(bulk, "PART", 64)


def file_of(tmp_path: Path, size: int) -> tuple[Path, str]:
    path = tmp_path / "file"
    path.write_bytes(bytes(n % 251 for n in range(size)))
    return path, hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.parametrize("size", [0, 1, 100, 101, 128, 129, 1000])
def test_what_was_sent_arrives_whatever_its_size(tmp_path: Path, size: int) -> None:
    path, sha = file_of(tmp_path, size)
    store, seen = MemoryStore(), list[tuple[int, bool]]()
    assert not bulk.keep(store, sha, 0.0)
    bulk.send(store, path, sha, lambda more, old: seen.append((more, old)))
    assert bulk.keep(store, sha, 0.0) and sum(more for more, _ in seen) == size
    bulk.fetch(store, sha, tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == path.read_bytes()
    assert (layout.data(sha) in {entry.key for entry in store.list("")}) == (size <= 100)


def test_cut_upload_continues_with_the_missing_parts(tmp_path: Path) -> None:
    path, sha = file_of(tmp_path, 1000)
    store = Counting(fails_at=9)
    with pytest.raises(StoreError, match="cut"):
        bulk.send(store, path, sha)
    assert not bulk.keep(store, sha, 0.0), "half of it is not there"
    had, seen = set(store.sent), dict[bool, int]()
    store.fails_at, store.sent = -1, []
    bulk.send(store, path, sha, lambda more, old: seen.update({old: seen.get(old, 0) + more}))
    assert had and not had & set(store.sent) and len(had) + len(store.sent) == 17
    assert sum(seen.values()) == 1000 and seen[True] == 64 * len(had)


def test_damaged_part_in_the_store_is_named_with_advice(tmp_path: Path) -> None:
    path, sha = file_of(tmp_path, 300)
    store = MemoryStore()
    bulk.send(store, path, sha)
    part = next(entry.key for entry in store.list(layout.data_parts(sha)) if "/000002-" in entry.key)
    store.put(part, b"x" * 64)
    with pytest.raises(DamagedError, match=r"000002-.* is damaged.*remove it and data/.*submit again"):
        bulk.fetch(store, sha, tmp_path / "back")
    store.delete(part)
    with pytest.raises(DamagedError, match="is not in the store any more"):
        bulk.fetch(store, sha, tmp_path / "back")


def test_a_part_of_another_size_is_sent_again(tmp_path: Path) -> None:
    path, sha = file_of(tmp_path, 300)
    store = Counting()
    bulk.send(store, path, sha)
    [first, *_] = [entry.key for entry in store.list(layout.data_parts(sha))]
    store.put(first, b"short")
    store.sent = []
    bulk.send(store, path, sha)
    assert store.sent == [first, layout.data_list(sha)]


def test_file_changing_during_its_upload_is_never_listed_as_whole(tmp_path: Path) -> None:
    path, sha = file_of(tmp_path, 300)
    path.write_bytes(b"y" * 300)
    store = MemoryStore()
    with pytest.raises(MissingError, match="changed while it was sent"):
        bulk.send(store, path, sha)
    assert not bulk.keep(store, sha, 0.0)


def test_store_that_holds_less_than_was_sent_is_not_believed(tmp_path: Path) -> None:
    class Forgetful(MemoryStore):
        def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
            return super().put(key, data[:5] if "/000001-" in key else data, if_absent=if_absent)

    path, sha = file_of(tmp_path, 300)
    store = Forgetful()
    with pytest.raises(StoreError, match="64 bytes were sent, but the store holds 5"):
        bulk.send(store, path, sha)
    assert not bulk.keep(store, sha, 0.0)


def test_what_was_never_sent_is_not_found(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        bulk.fetch(MemoryStore(), "0" * 64, tmp_path / "back")


@pytest.mark.parametrize(("size", "parts"), [(10**3, 16), (10**9, 1000), (64 * 1000, 1000)])
def test_parts_grow_so_that_there_are_at_most_a_thousand(size: int, parts: int) -> None:
    assert -(-size // bulk.part_size(size)) == parts
