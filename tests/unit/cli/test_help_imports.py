"""`make lint` refuses a verb whose `--help` loads more than its options."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests import help_imports

OURS = help_imports.SOURCE


def test_help_of_every_verb_imports_options_alone() -> None:
    checked = _checked(OURS)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("module", ["hostler.store", "yaml"])
def test_verb_that_imports_more_is_named(tmp_path: Path, module: str) -> None:
    copy = tmp_path / "hostler"
    shutil.copytree(OURS, copy, ignore=shutil.ignore_patterns("__pycache__", "train", "analysis"))
    verbs = copy / "cli" / "keep" / "verbs.py"
    verbs.write_text(verbs.read_text(encoding="utf-8") + f"\nimport {module}\n", encoding="utf-8")
    checked = _checked(copy)
    assert checked.returncode == 1, checked.stderr
    assert f"hostler gc --help imports {module}" in checked.stdout.splitlines()
    assert {line.split()[1] for line in checked.stdout.splitlines()} == {
        "pull",
        "push",
        "archive",
        "gc",
        "pack",
    }


def _checked(source: Path) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, help_imports.__file__, str(source)]
    return subprocess.run(words, capture_output=True, text=True, timeout=100, check=False)
