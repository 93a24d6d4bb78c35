"""The suite's runner: which failures are tried again, and what that decides."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SUITE = Path(__file__).parent.parent / "suite.py"

UNSTEADY = """
from pathlib import Path
def test_first_time_fails():
    been = Path(__file__).with_name("been")
    seen = been.exists()
    been.touch()
    assert seen
def test_steady(): pass
"""


def run_suite(folder: Path, source: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_these.py").write_text(source)
    command = [sys.executable, str(SUITE), "-p", "no:cacheprovider", "-q", "."]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)


def test_test_that_passes_alone_is_named_unsteady(tmp_path: Path) -> None:
    ran = run_suite(tmp_path, UNSTEADY)
    assert ran.returncode == 0, ran.stdout
    assert (
        "1 failed, 1 passed" in ran.stdout and "unsteady: test_these.py::test_first_time_fails" in ran.stdout
    )


@pytest.mark.parametrize(
    ("source", "says"),
    [
        ("def test_x(): assert 0", "now one by one"),
        ("import nosuchmodule", "nosuchmodule"),
        (UNSTEADY + "\ndef test_broken(): assert 0", "unsteady: test_these.py::test_first_time_fails"),
    ],
    ids=["fails twice", "not importable", "one of two"],
)
def test_test_that_fails_alone_fails_the_suite(tmp_path: Path, source: str, says: str) -> None:
    ran = run_suite(tmp_path, source)
    assert ran.returncode != 0 and says in ran.stdout, ran.stdout + ran.stderr


def test_many_failures_are_not_tried_again(tmp_path: Path) -> None:
    ran = run_suite(
        tmp_path, "import pytest\n@pytest.mark.parametrize('n', range(9))\ndef test_x(n): assert 0"
    )
    assert ran.returncode == 1 and "one by one" not in ran.stdout
