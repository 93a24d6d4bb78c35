from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.errors import StoreError
from hostler.store.folder import FolderStore
from hostler.store.memory import MemoryStore

parts = st.lists(st.text(alphabet="-./0a".replace("/", ""), min_size=1, max_size=2), min_size=1, max_size=3)
legal = parts.filter(lambda p: not {".", ".."} & set(p)).map("/".join)
any_prefix = st.text(alphabet="-./0a", max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.lists(legal, max_size=12), any_prefix, any_prefix, st.booleans())
def test_a_folder_lists_like_memory(
    tmp_path_factory: pytest.TempPathFactory, names: list[str], prefix: str, after: str, deep: bool
) -> None:
    folder, memory = FolderStore(tmp_path_factory.mktemp("store")), MemoryStore()
    for name in names:
        try:
            folder.put(name, b"")
        except StoreError:  # a key below another key: a folder cannot hold both
            continue
        memory.put(name, b"")
    listed = [row.key for row in folder.list(prefix, after, deep=deep)]
    assert listed == [row.key for row in memory.list(prefix, after, deep=deep)]
    assert listed == sorted(listed)


def test_only_files_somebody_asks_about_are_looked_at_and_only_needed_folders_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path)
    for folder in ("a", "b", "c"):
        for n in range(5):
            store.put(f"{folder}/{n}", b"")
    stats: list[str] = []
    reads: list[str] = []
    stat, scandir = os.stat, os.scandir
    monkeypatch.setattr(os, "stat", lambda path, *a, **k: stats.append(str(path)[-3:]) or stat(path, *a, **k))
    monkeypatch.setattr(os, "scandir", lambda path: reads.append(str(path)[-3:]) or scandir(path))
    rows = store.list("", "b/2")
    found = [next(rows), next(rows)]
    assert [row.key for row in found] == ["b/3", "b/4"] and stats == []
    assert found[1].size == 0 and found[1].etag and stats == ["b/4"]
    assert [read for read in reads if read in ("/a/", "/b/", "/c/")] == ["/b/"]


def test_a_put_is_flushed_to_disk_file_and_folder_once_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FolderStore(tmp_path)
    store.put("a/0", b"")
    synced: list[bool] = []
    fsync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.path.isdir(f"/dev/fd/{fd}")) or fsync(fd))
    store.put("a/1", b"x")
    store.put("a/2", b"x", if_absent=True)
    assert synced == [False, True] * 2
    assert store.put("a/2", b"y", if_absent=True) is False
    assert len(synced) == 4


def test_a_key_below_a_key_is_refused_with_a_reason(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("a", b"")
    with pytest.raises(StoreError, match="a file is where a folder should be"):
        store.put("a/b", b"")
