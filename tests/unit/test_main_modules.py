"""`python -m hostler` and `hostler.worker`, in a project whose files are named like modules of Python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

NAMES = (
    "json",
    "logging",
    "queue",
    "random",
    "select",
    "signal",
    "socket",
    "statistics",
    "tempfile",
    "token",
)


@pytest.mark.parametrize("words", [("hostler", "--version"), ("hostler.worker", "--help")])
def test_modules_of_a_project_are_never_hostlers(words: tuple[str, ...], tmp_path: Path) -> None:
    for name in NAMES:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a module of the project')\n")
    command = [sys.executable, "-m", *words]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0 and "hostler" in done.stdout, done.stderr
