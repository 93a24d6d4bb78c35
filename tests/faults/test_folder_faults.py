"""Full, read-only and lying file systems under the folder store: a clear line, and nothing half-made."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hostler.errors import MachineError, StoreError
from hostler.store import NotFound, folder
from hostler.store.folder import FolderStore

Link = Callable[..., None]


def test_a_full_disk_is_named_and_nothing_is_half_made(small_disk: Path, tmp_path: Path) -> None:
    store = FolderStore(small_disk / "store")
    store.put("kept", b"old")
    big = tmp_path / "big"
    big.write_bytes(bytes(2_000_000))
    for write in (
        lambda: store.put("kept", bytes(2_000_000)),
        lambda: store.put("new/one", bytes(2_000_000), if_absent=True),
        lambda: store.upload(big, "kept"),
    ):
        with pytest.raises(StoreError, match="disk is full"):
            write()
    assert store.get("kept").data == b"old"
    assert [path.name for path in small_disk.rglob("*") if path.is_file()] == ["kept"]


def test_a_download_to_a_full_disk_is_this_machines_trouble(small_disk: Path, tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    store.put("big", bytes(2_000_000))
    with pytest.raises(MachineError, match="cannot be written"):
        store.download("big", small_disk / "big")
    assert list(small_disk.iterdir()) == []


def test_a_read_only_disk_is_named_and_can_be_read(small_disk: Path) -> None:
    store = FolderStore(small_disk / "store")
    store.put("k", b"x")
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for write in (
        lambda: store.put("k", b"y"),
        lambda: store.put("new", b"y", if_absent=True),
        lambda: store.put("new/folder", b"y"),
        lambda: store.delete("k"),
    ):
        with pytest.raises(StoreError, match="read-only"):
            write()
    assert store.get("k").data == b"x"


def test_a_folder_without_rights_is_named(tmp_path: Path) -> None:
    store = FolderStore(tmp_path / "store")
    store.put("folder/k", b"x")
    (tmp_path / "store").chmod(0o000)
    user = os.geteuid()
    try:
        if user == 0:
            os.seteuid(65534)
        for call in (
            lambda: store.put("folder/k", b"y"),
            lambda: store.put("new", b"y", if_absent=True),
            lambda: store.get("folder/k"),
            lambda: list(store.list("")),
        ):
            with pytest.raises(StoreError, match="permission denied") as caught:
                call()
            assert not isinstance(caught.value, NotFound)
    finally:
        os.seteuid(user)
        (tmp_path / "store").chmod(0o700)


@pytest.mark.parametrize("code", [errno.EEXIST, errno.EIO, errno.EPERM, errno.ESTALE])
def test_a_link_that_was_made_is_won_whatever_it_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    real: Link = os.link

    def made_but_denied(source: str, target: str, **folders: Any) -> None:
        real(source, target, **folders)
        raise OSError(code, os.strerror(code))

    store = FolderStore(tmp_path)
    monkeypatch.setattr(os, "link", made_but_denied)
    monkeypatch.setattr(folder, "_bytes", lambda folder, name: pytest.fail("the second link says it all"))
    assert store.put("k", b"mine", if_absent=True) is True
    monkeypatch.undo()
    assert store.get("k").data == b"mine"
    assert os.listdir(tmp_path) == ["k"]


def test_a_link_lost_to_another_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another's file appears between the look and the link."""
    real: Link = os.link

    def beaten(source: str, target: str, **folders: Any) -> None:
        (tmp_path / "k").write_bytes(b"theirs")
        real(source, target, **folders)

    monkeypatch.setattr(os, "link", beaten)
    assert FolderStore(tmp_path).put("k", b"mine", if_absent=True) is False
    assert (tmp_path / "k").read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["k"]


@pytest.mark.parametrize("code", [errno.EPERM, errno.ENOTSUP, errno.EMLINK])
def test_a_file_system_without_hard_links_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def unsupported(source: str, target: str, **folders: Any) -> None:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "link", unsupported)
    with pytest.raises(StoreError, match=r"no hard links.*s3://"):
        FolderStore(tmp_path).put("k", b"mine", if_absent=True)
    assert os.listdir(tmp_path) == []


def test_a_writer_killed_before_the_link_leaves_no_key(tmp_path: Path) -> None:
    script = (
        "import os, signal, sys; from hostler.store.folder import FolderStore\n"
        "os.link = os.replace = lambda *a, **k: os.kill(os.getpid(), signal.SIGKILL)\n"
        "FolderStore(sys.argv[1]).put('k/1', b'x', if_absent=sys.argv[2] == 'create')\n"
    )
    surroundings = {**os.environ, "PYTHONPATH": ":".join(sys.path)}
    for how in ("create", "replace"):
        done = subprocess.run([sys.executable, "-c", script, str(tmp_path), how], env=surroundings)
        assert done.returncode == -9
    store = FolderStore(tmp_path)
    assert [p.name[:5] for p in tmp_path.rglob("*") if p.is_file()] == [".tmp-", ".tmp-"]
    assert list(store.list("")) == list(store.list("", deep=False)) == []
    assert store.put("k/1", b"y", if_absent=True) is True
