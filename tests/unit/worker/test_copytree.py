from __future__ import annotations

import os
from pathlib import Path

import pytest

from hostler.worker.prepare import code
from hostler.worker.prepare.code import copy_tree


def facts(root: Path) -> dict[str, tuple[object, ...]]:
    found: dict[str, tuple[object, ...]] = {}
    for path in sorted([root, *root.rglob("*")]):
        info = path.lstat()
        content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else b""
        times = () if path.is_symlink() else (info.st_mtime_ns,)
        found[str(path.relative_to(root))] = (info.st_mode, content, *times)
    return found


def test_bytes_modes_times_and_links_are_those_of_the_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "PIECE", 1000)
    source = tmp_path / "a 'b'\n"
    (source / "sub" / "empty").mkdir(parents=True)
    (source / "run.sh").write_text("#!/bin/sh\n")
    (source / "run.sh").chmod(0o755)
    (source / "sub" / "large").write_bytes(os.urandom(12_345))
    (source / "sub" / "nothing").touch(mode=0o444)
    (source / "dangling").symlink_to("nowhere")
    (source / "to-sub").symlink_to("sub")
    os.utime(source / "run.sh", (1, 2))
    (source / "sub").chmod(0o750)
    copy_tree(str(source), str(tmp_path / "copy"))
    assert facts(tmp_path / "copy") == facts(source)


def test_what_is_there_is_not_written_over(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    with pytest.raises(FileExistsError):
        copy_tree(str(tmp_path / "a"), str(tmp_path / "b"))


def test_what_is_neither_file_nor_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    os.mkfifo(tmp_path / "a" / "pipe")
    with pytest.raises(OSError, match="neither a file nor a folder"):
        copy_tree(str(tmp_path / "a"), str(tmp_path / "b"))
