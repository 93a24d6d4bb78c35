"""The store is tried by a worker's own client before a worker starts, and a refusal is said in one line."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import hostler
from hostler.backends.store_check import check_store
from hostler.errors import MachineError

HERE = str(Path(hostler.__file__).parent.parent)


def never() -> bytes:
    raise AssertionError("read again")


def test_store_that_answers_is_left_as_it_was(tmp_path: Path) -> None:
    known, before = list(sys.path), set(os.listdir("/proc/self/fd"))
    check_store(str(tmp_path), [HERE], never)
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert sys.path == known and set(os.listdir("/proc/self/fd")) == before


def test_unusable_store_is_said_in_the_checks_last_words(tmp_path: Path) -> None:
    (tmp_path / "probe").write_text("a file where the check makes a folder")
    with pytest.raises(MachineError) as refused:
        check_store(str(tmp_path), [HERE], never)
    said = str(refused.value)
    assert f"no worker can use {tmp_path} here (Python " in said and "probe" in said and "\n" not in said


def test_check_that_breaks_off_is_said_in_its_last_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(store: str) -> int:
        raise ValueError(f"first\n{store}")

    monkeypatch.setattr("hostler.worker.reach.main", breaks)
    with pytest.raises(MachineError) as refused:
        check_store(str(tmp_path), [HERE], never)
    assert str(refused.value).endswith(f": {tmp_path}")


def test_store_silent_for_the_client_alone_blames_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = list[int]()
    monkeypatch.setattr("hostler.worker.reach.main", lambda store: 75)
    with pytest.raises(MachineError, match="answers, but not the worker's client"):
        check_store(str(tmp_path), [HERE], lambda: asked.append(1))
    assert asked == [1]
