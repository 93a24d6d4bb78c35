"""Notes of a machine's runs, where the disk that they lie on is broken."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from hostler import env
from hostler.worker.run import leftovers


def test_note_that_a_broken_disk_keeps_harms_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "machine_dir", lambda: tmp_path)
    group = SimpleNamespace(start="0", mark="m")
    process = SimpleNamespace(pid=os.getpid(), group=group, supervisor=0, supervisor_start="")
    leftovers.remember("s", "r", process)  # type: ignore[arg-type]
    (tmp_path / "runs").rename(tmp_path / "gone")
    (tmp_path / "runs").touch()
    leftovers.forget("s", "r")
