from __future__ import annotations

import io
import os
import tarfile
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from dict_store import DictStore

from hostler.errors import MissingError, SpecError, UsageError
from hostler.fleet.snapshot import data
from hostler.records import layout
from hostler.spec.job import DataItem


@dataclass(frozen=True)
class DataEntry:
    name: str
    path: str | None = None
    url: str | None = None
    run: tuple[str, ...] = ()
    out: str | None = None
    at: str | None = None


def item(entry: DataEntry, project: Path, store: DictStore) -> DataItem:
    late = time.time() + 60
    return data.data_items([entry], project, store, project.parent / "cache", clock=lambda: late)[0]


def unpacked(store: DictStore, blob: str) -> dict[str, bytes]:
    with tarfile.open(fileobj=io.BytesIO(store.get(layout.data(blob)).data)) as tar:
        return {info.name: (tar.extractfile(info) or io.BytesIO()).read() for info in tar if info.isreg()}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "p"
    (folder / "data" / "sub").mkdir(parents=True)
    (folder / "data" / "sub" / "x.csv").write_text("1")
    (folder / "data" / "junk.pyc").write_text("2")
    return folder


def test_a_folder_goes_into_the_store_whole_and_once(project: Path) -> None:
    store = DictStore()
    found = item(DataEntry("train", path="data/"), project, store)
    assert found.name == "train" and found.blob is not None and found.out is None
    assert unpacked(store, found.blob) == {"sub/x.csv": b"1", "junk.pyc": b"2"}
    assert item(DataEntry("other", path="data"), project, store).blob == found.blob
    assert store.uploads == [layout.data(found.blob)]
    assert not list((project.parent / "cache" / "tmp").iterdir())


def test_an_unchanged_folder_is_not_read_again(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = DictStore()
    first = item(DataEntry("train", path="data"), project, store)
    monkeypatch.setattr(data, "pack", None)
    assert item(DataEntry("train", path="data"), project, store) == first


def test_another_store_gets_the_bytes_although_the_folder_is_known(project: Path) -> None:
    item(DataEntry("train", path="data"), project, DictStore())
    other = DictStore()
    found = item(DataEntry("train", path="data"), project, other)
    assert other.uploads == [layout.data(found.blob or "")]


def test_an_archive_goes_as_it_is(project: Path) -> None:
    (project / "set.zip").write_bytes(b"any bytes")
    store = DictStore()
    found = item(DataEntry("set", path="set.zip"), project, store)
    assert store.get(layout.data(found.blob or "")).data == b"any bytes" and found.out is None


def test_a_plain_file_is_found_by_its_own_name(project: Path) -> None:
    (project / "alias.csv").symlink_to("data/sub/x.csv")
    store = DictStore()
    for path in ("data/sub/x.csv", "alias.csv"):
        found = item(DataEntry("one", path=path), project, store)
        assert found.out == "x.csv" and unpacked(store, found.blob or "") == {"x.csv": b"1"}


def test_paths_urls_and_commands_pass_through(project: Path) -> None:
    store = DictStore()
    assert item(DataEntry("a", path="/mnt/x"), project, store) == DataItem("a", path="/mnt/x")
    assert item(DataEntry("b", url="gs://b/c/"), project, store) == DataItem("b", url="gs://b/c/")
    computed = DataEntry("c", run=("make",), out="out/")
    assert item(computed, project, store) == DataItem("c", run=("make",), out="out/")
    assert not store.objects


def test_a_pipe_is_no_data(project: Path) -> None:
    store = DictStore()
    os.mkfifo(project / "pipe")
    with pytest.raises(MissingError, match="pipe is neither a file nor a folder"):
        item(DataEntry("a", path="pipe"), project, store)
    assert not store.objects


@pytest.mark.parametrize(
    ("entry", "kind", "words"),
    [
        (DataEntry("a", path="none/"), MissingError, "does not exist"),
        (DataEntry("a", url="ftp://x/y"), SpecError, "is not an address that hostler fetches from"),
        (DataEntry("a", run=("make",)), SpecError, "no `out`"),
        (DataEntry("a"), SpecError, "is empty"),
        (DataEntry("../a", path="data"), UsageError, "not a name"),
    ],
)
def test_what_cannot_be_is_one_clear_line(
    project: Path, entry: DataEntry, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        item(entry, project, DictStore())


def test_data_with_a_link_leading_out_is_refused(project: Path) -> None:
    os.symlink("/etc", project / "data" / "etc")
    with pytest.raises(SpecError, match="etc: a link that leads out"):
        item(DataEntry("train", path="data"), project, DictStore())


def test_archive_changed_during_upload_keeps_no_wrong_name(project: Path) -> None:
    class Slow(DictStore):
        def upload(self, path: Path, key: str) -> None:
            path.write_bytes(b"changed")
            super().upload(path, key)

    (project / "set.zip").write_bytes(b"any bytes")
    store = Slow()
    with pytest.raises(MissingError, match="changed while it was read"):
        item(DataEntry("set", path="set.zip"), project, store)
    assert not store.objects


def test_a_place_of_data_is_part_of_its_item(project: Path) -> None:
    assert item(DataEntry("a", path="/x", at="data/x"), project, DictStore()).at == "data/x"


CODE = ("train.py", "lib/a.py", "data/sub/prepare.py", "data/sub/x.csv")


@pytest.mark.parametrize(
    ("entry", "taken"),
    [
        (DataEntry("a", path="data", at="data"), ""),  # the same files
        (DataEntry("a", path="data", at="lib"), ""),
        (DataEntry("a", path="data", at="../lib"), ""),
        (DataEntry("a", path="data", at="train.py"), "train.py"),
        (DataEntry("a", path="data", at="train.py/x"), "train.py"),
        (DataEntry("a", path="data/sub/x.csv", at="lib"), "lib/a.py"),
        (DataEntry("a", path="other", at="data"), "data/sub/x.csv"),
        (DataEntry("a", url="https://x/y.bin", at="lib/a.py"), "lib/a.py"),
        (DataEntry("a", url="https://x/y.bin", at="lib/b.py"), ""),
    ],
)
def test_data_in_the_place_of_other_code_is_refused(project: Path, entry: DataEntry, taken: str) -> None:
    for name in CODE[:3]:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text("code")
    (project / "other" / "sub").mkdir(parents=True)
    (project / "other" / "sub" / "x.csv").write_text("other")
    if not taken:
        data.check_places([entry], project, CODE)
        return
    with pytest.raises(
        SpecError, match=f"data 'a': at: {entry.at} is taken: the code has {taken}"
    ) as refused:
        data.check_places([entry], project, CODE)
    assert "choose another `at:`" in refused.value.hint
