from __future__ import annotations

import hashlib
import io
import os
import tarfile
from pathlib import Path

import pytest
from plain_store import PlainStore

from hostler.errors import DamagedError, HostlerError, MissingError, PrepareError
from hostler.records import layout
from hostler.spec.job import DataItem
from hostler.worker.prepare.data_dir import data_dir


@pytest.fixture
def store(tmp_path: Path) -> PlainStore:
    return PlainStore(tmp_path / "store")


def blob(store: PlainStore, name: str, text: str) -> str:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        info = tarfile.TarInfo(name)
        info.size = len(text)
        tar.addfile(info, io.BytesIO(text.encode()))
    sha = hashlib.sha256(out.getvalue()).hexdigest()
    store.put(layout.data(sha), out.getvalue())
    return sha


def build(tmp_path: Path, store: PlainStore, *items: DataItem, run: str = "run") -> Path:
    code = tmp_path / "code" / "abc"
    code.mkdir(parents=True, exist_ok=True)
    environ = {"PATH": os.environ["PATH"], "COUNT": str(tmp_path / "count")}
    return data_dir(items, store, tmp_path / "cache", tmp_path / run, lambda _: None, code, environ)


def test_a_blob_is_unpacked_once_for_all_runs_and_names(tmp_path: Path, store: PlainStore) -> None:
    sha = blob(store, "x.csv", "1")
    items = (DataItem("train", blob=sha), DataItem("one", blob=sha, out="x.csv"))
    for run in ("first", "second"):
        found = build(tmp_path, store, *items, run=run)
        assert (found / "train" / "x.csv").read_text() == "1" and (found / "one").read_text() == "1"
    assert (store.root / "downloads.log").read_text().count("\n") == 1


def test_a_second_attempt_in_the_same_folder_replaces_the_links(tmp_path: Path, store: PlainStore) -> None:
    build(tmp_path, store, DataItem("a", path=str(tmp_path)))
    assert os.listdir(build(tmp_path, store, DataItem("b", path=str(tmp_path)))) == ["b"]
    assert tmp_path.is_dir()


def test_absolute_path_and_local_folder_are_used_in_place(tmp_path: Path, store: PlainStore) -> None:
    there = tmp_path / "data sets"
    there.mkdir()
    found = build(tmp_path, store, DataItem("a", path=str(there)), DataItem("b", url=there.as_uri()))
    assert os.readlink(found / "a") == os.readlink(found / "b") == str(there)


def test_a_url_is_fetched_once(tmp_path: Path, store: PlainStore) -> None:
    (tmp_path / "x.csv").write_text("first")
    item = DataItem("x", url=(tmp_path / "x.csv").as_uri())
    assert (build(tmp_path, store, item) / "x").read_text() == "first"
    (tmp_path / "x.csv").write_text("second")
    assert (build(tmp_path, store, item) / "x").read_text() == "first"


def test_a_command_prepares_it_once(tmp_path: Path, store: PlainStore) -> None:
    program = "echo x >> $COUNT; mkdir -p made/in; echo 1 > made/in/x.csv; echo junk > junk"
    item = DataItem("made", run=("sh", "-c", program), out="made/in/")
    for run in ("first", "second"):
        assert os.listdir(build(tmp_path, store, item, run=run) / "made") == ["x.csv"]
    assert (tmp_path / "count").read_text() == "x\n"


@pytest.mark.parametrize(
    ("item", "kind", "words"),
    [
        (
            DataItem("a", path="/no/such/folder"),
            MissingError,
            "/no/such/folder does not exist on this machine",
        ),
        (DataItem("a", blob="0" * 64), PrepareError, "not in the store"),
        (DataItem("a", run=("false",), out="x"), PrepareError, "failed"),
        (DataItem("a", run=("true",), out="x"), PrepareError, "did not write x"),
        (DataItem("a", run=("ln", "-s", "/etc", "x"), out="x"), PrepareError, "did not write x"),
        (DataItem("a", run=("true",), out="../x"), PrepareError, "inside its folder"),
        (DataItem("a", run=("true",), out="/etc"), PrepareError, "inside its folder"),
        (DataItem("../a", path="/"), HostlerError, "not a name"),
        (DataItem("a"), PrepareError, "no source"),
    ],
)
def test_what_cannot_be_is_one_clear_line(
    tmp_path: Path, store: PlainStore, item: DataItem, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        build(tmp_path, store, item)


def test_damaged_bytes_are_refused(tmp_path: Path, store: PlainStore) -> None:
    sha = blob(store, "x.csv", "1")
    store.put(layout.data(sha), b"other")
    with pytest.raises(DamagedError):
        build(tmp_path, store, DataItem("a", blob=sha))
