from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import MachineError, StoreError, UsageError
from hostler.records import project
from hostler.settings import Timing
from hostler.store import open_store
from hostler.store.folder import FolderStore
from hostler.store.memory import MemoryStore
from hostler.store.registry import check, is_folder


def test_a_path_is_a_folder_and_made_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert open_store(".hostler").url == str(tmp_path / ".hostler")
    assert open_store("~/runs").url == "/home/me/runs"
    assert open_store("/a b/'q'\n; echo x").url == "/a b/'q'\n; echo x"
    assert open_store("file:///a%20b/c").url == "/a b/c"
    assert open_store("file://localhost/a").url == "/a"
    assert isinstance(open_store("x"), FolderStore)
    assert not (tmp_path / ".hostler").exists()


def test_a_bucket_keeps_bucket_and_prefix(monkeypatch: pytest.MonkeyPatch) -> None:
    assert open_store("s3://bucket/my/prefix/").url == "s3://bucket/my/prefix"
    assert open_store("S3://bucket").url == "s3://bucket"
    assert open_store("gs://bucket/p").url == "gs://bucket/p"
    with pytest.raises(UsageError, match="names no bucket"):
        open_store("s3:///prefix")


def test_a_bucket_without_its_driver_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith(("obstore", "hostler.store.bucket"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delitem(sys.modules, "hostler.store.bucket", raising=False)
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(MachineError, match=r"^gs://bucket/p needs the package obstore ") as said:
        open_store("gs://bucket/p")
    assert said.value.hint == "pip install 'hostler[buckets]', which is obstore"
    assert isinstance(open_store("memory:"), MemoryStore)


def test_named_memory_is_shared_and_unnamed_is_not() -> None:
    assert open_store("memory:a") is open_store("memory:a")
    assert open_store("memory:a") is not open_store("memory:b")
    assert open_store("memory:") is not open_store("memory:")


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("gcs://b", "did you mean gs://"),
        ("s4://b", "did you mean s3://"),
        ("fiel:///x", "did you mean file://"),
        ("http://host/x", "known: a folder"),
        ("ssh://host", "names no folder"),
        ("sftp://host/x", "did you mean ssh://"),
        ("ssh://-oProxyCommand=x/y", "is not a host"),
        ("s3:/bucket", "did you mean s3://"),
        ("gs:bucket", "did you mean gs://"),
        ("", "empty"),
        (" ", "empty"),
    ],
)
def test_what_is_no_store_says_what_was_meant(url: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        open_store(url)


def test_only_folders_are_folders() -> None:
    assert [is_folder(url) for url in ("x", "/x", "file:///x", "memory:", "s3://b", "gs://b", "az://b")] == [
        *(True,) * 3,
        *(False,) * 4,
    ]


def test_a_check_leaves_nothing_behind(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    check(store)
    assert list(store.list("")) == []


def test_check_notices_unwritable_and_forgetful_stores(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="a file is where a folder should be"):
        check(FolderStore(tmp_path / "file"))

    class Forgetful(MemoryStore):
        def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
            return super().put(key, data[:-1], if_absent=if_absent)

    with pytest.raises(StoreError, match="does not give back"):
        check(Forgetful())

    class Blank(MemoryStore):
        """As a server of another kind, which says yes to all and has nothing."""

        def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
            return True

    with pytest.raises(StoreError, match=r"does not give back .*check its address"):
        check(Blank())


class Overwriting(MemoryStore):
    """As a bucket that ignores conditional writes."""

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        return super().put(key, data)


class Flattering(MemoryStore):
    """As a bucket that says "created" about what was there, and keeps that."""

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        super().put(key, data, if_absent=if_absent)
        return True


class Modest(MemoryStore):
    """As a bucket that says "exists already", and has written all the same."""

    def put(self, key: str, data: bytes, *, if_absent: bool = False) -> bool:
        return bool([super().put(key, data, if_absent=if_absent), super().put(key, data)][0])


@pytest.mark.parametrize("kind", [Overwriting, Flattering, Modest])
def test_bucket_that_ignores_conditional_writes_is_refused(kind: type[MemoryStore]) -> None:
    with pytest.raises(StoreError, match="ignores conditional writes"):
        check(kind())


@pytest.mark.parametrize("kind", [Overwriting, Flattering, Modest])
def test_project_is_not_made_where_creates_overwrite(kind: type[MemoryStore]) -> None:
    store = kind()
    with pytest.raises(StoreError, match="every worker would win"):
        project.ensure(store, "p", Timing())
    assert list(store.list("")) == []


def test_later_submissions_do_not_pay_for_the_check() -> None:
    store, asked = MemoryStore(), list[str]()
    project.ensure(store, "p", Timing())
    store.before = lambda operation, key: asked.append(operation)
    project.ensure(store, "p", Timing())
    assert "put" not in asked


def test_folder_whose_links_overwrite_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def overwrite(src: str, dst: str, **given: Any) -> None:
        with suppress(FileNotFoundError):
            os.unlink(dst, dir_fd=given["dst_dir_fd"])
        link(src, dst, **given)

    monkeypatch.setattr(os, "link", overwrite)
    store = FolderStore(tmp_path / "store")
    with pytest.raises(StoreError, match="hard link overwrite a file") as error:
        check(store)
    assert "ext4" in error.value.hint and list(store.list("")) == []


def test_a_file_is_no_store_to_a_reader_either(tmp_path: Path) -> None:
    (tmp_path / "train.py").touch()
    with pytest.raises(StoreError, match="a file is where a folder should be"):
        open_store(str(tmp_path / "train.py"))
