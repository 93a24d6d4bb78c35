from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hostler.errors import StoreError
from hostler.store import NotFound, Store
from hostler.store.base import get_into, put_again
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


@pytest.mark.parametrize("make", [FolderStore, lambda path: MemoryStore()])
def test_object_is_read_into_memory_that_is_there(tmp_path: Path, make: Callable[[Path], Store]) -> None:
    store, memory = make(tmp_path), memoryview(bytearray(8))
    store.put("a/b", b"12345")
    assert get_into(store, "a/b", memory) == 5 and bytes(memory) == b"12345\0\0\0"
    assert get_into(store, "a/b", memory[6:]) == 2 and bytes(memory) == b"12345\00012"
    with pytest.raises(NotFound):
        get_into(store, "a/c", memory)


def test_pipe_and_folder_are_no_objects_to_read_into_memory(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("a/b", b"")
    os.mkfifo(tmp_path / "pipe")
    for key in ("a", "pipe"):
        with pytest.raises(NotFound):
            get_into(store, key, memoryview(bytearray(8)))


def test_listing_reads_only_needed_files_and_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_put_flushes_file_and_folder_once_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    (folder / "below").mkdir(parents=True)
    (folder / "below" / "k").write_text("theirs")
    (folder / "k").write_text("theirs")
    return folder


def untouched(outside: Path) -> bool:
    files = {
        str(path.relative_to(outside)): path.read_text() for path in outside.rglob("*") if path.is_file()
    }
    return files == {"below/k": "theirs", "k": "theirs"}


@pytest.mark.parametrize("link", ["runs/a/link", "runs/link", "runs/a/b/link"])
def test_link_below_the_root_is_not_followed(tmp_path: Path, outside: Path, link: str) -> None:
    store = FolderStore(tmp_path / "store")
    store.put("runs/a/own", b"mine")
    place = tmp_path / "store" / link
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(outside)
    (place.parent / "file").symlink_to(outside / "k")
    assert [row.key for row in store.list("")] == ["runs/a/own"]
    assert [row.key for row in store.list(f"{link}/")] == []
    assert [row.key for row in store.list(f"{link}/", deep=False)] == []
    assert [row.key for row in store.list("runs/", deep=False)] == ["runs/a/"]
    for key in (f"{link}/k", f"{link}/below/k", f"{os.path.dirname(link)}/file"):
        with pytest.raises(NotFound):
            store.get(key)
        with pytest.raises(NotFound):
            store.download(key, tmp_path / "got")
    store.delete(f"{link}/k", f"{link}/below/k")
    for if_absent in (False, True):
        with pytest.raises(StoreError, match=r"a link is in the way.*mount"):
            store.put(f"{link}/new", b"x", if_absent=if_absent)
    (tmp_path / "source").write_text("x")
    with pytest.raises(StoreError, match="a link is in the way"):
        store.upload(tmp_path / "source", f"{link}/below/k")
    assert untouched(outside) and store.get("runs/a/own").data == b"mine"


def test_linked_top_folder_is_said_by_every_method(tmp_path: Path, outside: Path) -> None:
    store = FolderStore(tmp_path / "store")
    store.put("own", b"mine")
    (tmp_path / "store" / "runs").symlink_to(outside)
    for call in (
        lambda: store.get("runs/k"),
        lambda: list(store.list("runs/")),
        lambda: list(store.list("runs/below/", deep=False)),
        lambda: store.put("runs/k", b"x"),
        lambda: store.delete("runs/k"),
    ):
        with pytest.raises(
            StoreError, match=r"a link is in the way.*make the store's own folder the link"
        ) as caught:
            call()
        assert not isinstance(caught.value, NotFound)
    assert untouched(outside)


def test_put_replaces_a_link_and_leaves_its_target(tmp_path: Path, outside: Path) -> None:
    store = FolderStore(tmp_path / "store")
    store.put("a/own", b"")
    (tmp_path / "store" / "a" / "k").symlink_to(outside / "k")
    with pytest.raises(StoreError):
        store.put("a/k", b"mine", if_absent=True)
    store.put("a/k", b"mine")
    assert store.get("a/k").data == b"mine" and untouched(outside)
    (tmp_path / "store" / "a" / "gone").symlink_to(outside / "k")
    store.delete("a/gone")
    assert untouched(outside) and not (tmp_path / "store" / "a" / "gone").is_symlink()


def test_store_whose_root_is_a_link_works_as_any(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "store").symlink_to("disk")
    store = FolderStore(tmp_path / "store" / "deeper")
    assert store.put("a/b", b"x", if_absent=True) and store.get("a/b").data == b"x"
    assert [row.key for row in store.list("a/")] == ["a/b"]
    store.delete("a/b")
    assert list(store.list("")) == [] and os.listdir(tmp_path / "disk" / "deeper") == []


def test_pipe_as_a_key_is_absent_and_never_waited_for(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    store.put("a/own", b"")
    os.mkfifo(tmp_path / "a" / "pipe")
    assert [row.key for row in store.list("")] == ["a/own"]
    with pytest.raises(NotFound):
        store.get("a/pipe")
    with pytest.raises(NotFound):
        store.download("a/pipe", tmp_path / "got")
    with pytest.raises(StoreError, match="not a file"):
        store.put("a/pipe", b"x", if_absent=True)
    store.put("a/pipe", b"x")
    assert store.get("a/pipe").data == b"x"


def test_folder_of_pipes_and_links_alone_is_not_listed(tmp_path: Path, outside: Path) -> None:
    store = FolderStore(tmp_path / "store")
    store.put("a/own", b"")
    (tmp_path / "store" / "b" / "c").mkdir(parents=True)
    os.mkfifo(tmp_path / "store" / "b" / "c" / "pipe")
    (tmp_path / "store" / "b" / "link").symlink_to(outside)
    assert [row.key for row in store.list("", deep=False)] == ["a/"]


@pytest.fixture
def nested(tmp_path: Path) -> Iterator[Path]:
    """A store with folders in folders: deeper than Python calls, and than a path is long."""
    (tmp_path / "store" / "a").mkdir(parents=True)
    handle = os.open(tmp_path / "store" / "a", os.O_RDONLY)
    for _ in range(5000):
        os.mkdir("n", dir_fd=handle)
        inner = os.open("n", os.O_RDONLY, dir_fd=handle)
        os.close(handle)
        handle = inner
    os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=handle))
    os.close(handle)
    yield tmp_path / "store"
    subprocess.run(["rm", "-rf", str(tmp_path / "store")], check=True)  # pytest's own removal calls itself


def test_folders_nested_without_end_are_passed_over(nested: Path) -> None:
    store = FolderStore(nested)
    store.put("a/b", b"")
    store.put("z", b"")
    assert [row.key for row in store.list("")] == ["a/b", "z"]
    assert [row.key for row in store.list("", deep=False)] == ["a/", "z"]
    store.delete("a/b")
    assert [row.key for row in store.list("", deep=False)] == ["z"]


def test_existing_object_gets_a_second_name_without_a_write(tmp_path: Path) -> None:
    store, data = FolderStore(tmp_path), b"end"
    store.put("sweeps/s/log/a.json", data)
    put_again(store, data, "sweeps/s/ends/a.json", "sweeps/s/log/a.json")
    assert store.get("sweeps/s/ends/a.json").data == data
    assert os.stat(tmp_path / "sweeps/s/ends/a.json").st_nlink == 2
    store.delete("sweeps/s/log/a.json")
    assert store.get("sweeps/s/ends/a.json").data == data, "each name stands for itself"


@pytest.mark.parametrize("case", ["its name is taken", "the object is gone", "no second names here"])
def test_second_name_that_cannot_be_had_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    store, data = FolderStore(tmp_path), b"end"
    if "gone" not in case:
        store.put("log/a.json", data)
    if "taken" in case:
        store.put("ends/a.json", b"older")

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EMLINK, "too many")

    if "names here" in case:
        monkeypatch.setattr(os, "link", refuse)
    put_again(store, data, "ends/a.json", "log/a.json")
    assert store.get("ends/a.json").data == data
    assert [row.key for row in store.list("")] == sorted(
        ["ends/a.json", *([] if "gone" in case else ["log/a.json"])]
    )


def test_store_without_second_names_gets_the_bytes() -> None:
    memory = MemoryStore()
    put_again(memory, b"end", "ends/a.json", "log/a.json")
    assert memory.get("ends/a.json").data == b"end"
