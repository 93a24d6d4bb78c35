"""The temporary folders of the suite's tests: in memory where that can be, for those who run it alone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

import memory
import servers

MUCH = 64 << 30


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "pytest of me"


def test_folder_is_in_memory_for_the_command_alone(folder: Path) -> None:
    words = memory.within(folder, MUCH)
    if not words:
        servers.missing("mounting in a namespace needs root and unshare")
    shell = 'stat -f -c %T "$0" && touch "$0/file" && echo "$1"'
    told = subprocess.run(
        [*words, "sh", "-c", shell, str(folder), "a b"], capture_output=True, text=True, check=True
    )
    assert told.stdout == "tmpfs\na b\n"
    assert not os.path.ismount(folder) and list(folder.iterdir()) == []


def test_little_memory_is_left_to_the_tests(folder: Path) -> None:
    assert memory.within(folder, memory.NEEDED - 1) == []
    assert not folder.exists()


def test_folder_that_has_the_checkout_in_it_is_not_hidden() -> None:
    assert memory.within(Path(memory.__file__).parents[2], MUCH) == []


def test_folder_that_the_command_starts_in_is_not_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert memory.within(tmp_path.parent, MUCH) == []


def test_disk_is_used_where_nothing_can_be_mounted(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "MOUNTED", "exit 1")
    assert memory.within(folder, MUCH) == []
