from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from hostler.worker.run import folder_remover
from hostler.worker.run.folder_remover import FolderRemover, remove


def tree(root: Path, name: str) -> Path:
    folder = root / name
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "file").write_text("x")
    (folder / "link").symlink_to(root / "kept")
    return folder


def test_many_folders_go_by_one_command_and_link_targets_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kept").mkdir()
    folders = [tree(tmp_path, f"-rf '{n}'\n; echo") for n in range(5)]
    run, calls = subprocess.run, []
    monkeypatch.setattr(folder_remover.subprocess, "run", lambda *a, **k: calls.append(a) or run(*a, **k))
    remover = FolderRemover()
    for folder in folders:
        remover.remove_soon(folder)
    remover.finish()
    assert len(calls) == 1 and [p.name for p in tmp_path.iterdir()] == ["kept"]


def test_remover_removes_again_after_it_was_done(tmp_path: Path) -> None:
    remover = FolderRemover()
    for name in ("first", "second"):
        remover.remove_soon(tree(tmp_path, name))
        remover.finish()
        assert not (tmp_path / name).exists()
    remover.finish()


def test_without_the_program_it_is_done_here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert shutil.which("rm") is None
    folder = tree(tmp_path, "folder")
    remove([folder])
    assert not folder.exists()
