"""Blobs that a submission finds in the store: young ones are left as they are, old ones written again."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from hostler.fleet import library
from hostler.fleet.snapshot import snapshot
from hostler.records import layout
from hostler.records.checkpoint import bulk
from hostler.settings import Sizes
from hostler.store.memory import MemoryStore

HOUR = 3600.0
Bring = Callable[[MemoryStore], object]


def code(folder: Path) -> Bring:
    (folder / "p").mkdir()
    (folder / "p" / "train.py").write_text("x")
    shot = snapshot.take(folder / "p", Sizes(), cache=folder / "c")
    return lambda store: snapshot.upload(store, shot)


def wheel(folder: Path) -> Bring:
    (folder / "driver.whl").write_bytes(b"driver")
    return lambda store: library.bring_wheel(store, folder / "driver.whl")


def data(folder: Path) -> Bring:
    (folder / "data.tar").write_bytes(b"data")
    sha = hashlib.sha256(b"data").hexdigest()

    def bring(store: MemoryStore) -> None:
        if not bulk.keep(store, sha, time.time()):
            bulk.send(store, folder / "data.tar", sha)

    return bring


@pytest.mark.parametrize("kind", [code, wheel, data, lambda folder: library.bring])
def test_reused_blob_is_written_again_only_if_old(kind: Callable[[Path], Bring], tmp_path: Path) -> None:
    now = time.time()
    clock = [now - HOUR]
    store, bring = MemoryStore(clock=lambda: clock[0]), kind(tmp_path)
    bring(store)
    first = list(store.list(""))
    bring(store)
    assert list(store.list("")) == first
    for entry in first:
        store.delete(entry.key)
    clock[0] = now - 13 * HOUR
    bring(store)
    old = {entry.key: store.get(entry.key).data for entry in store.list("")}
    clock[0] = now
    bring(store)
    assert {entry.key: store.get(entry.key).data for entry in store.list("")} == old
    assert all(entry.modified == now for entry in store.list(""))


def test_code_record_of_first_submission_outlives_refresh(tmp_path: Path) -> None:
    clock = [time.time() - 13 * HOUR]
    store, bring = MemoryStore(clock=lambda: clock[0]), code(tmp_path)
    bring(store)
    [record] = [entry.key for entry in store.list("code/") if entry.key.endswith(".json")]
    store.put(record, b'{"commit": "of the first"}')
    clock[0] = time.time()
    bring(store)
    assert store.get(record).data == b'{"commit": "of the first"}'


def test_large_data_refreshes_its_list_and_sends_lost_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "WHOLE", 10)
    monkeypatch.setattr(bulk, "PART", 8)
    content = bytes(range(40))
    (tmp_path / "large").write_bytes(content)
    sha, now = hashlib.sha256(content).hexdigest(), time.time()
    clock = [now - 13 * HOUR]
    store = MemoryStore(clock=lambda: clock[0])
    bulk.send(store, tmp_path / "large", sha)
    parts = list(store.list(layout.data_parts(sha)))
    clock[0] = now
    assert bulk.keep(store, sha, now)
    assert [entry.modified for entry in store.list(layout.data_list(sha))] == [now]
    assert list(store.list(layout.data_parts(sha))) == parts
    clock[0] = now - 13 * HOUR
    store.put(layout.data_list(sha), store.get(layout.data_list(sha)).data)
    store.delete(parts[2].key)
    assert not bulk.keep(store, sha, now)
