"""`make lint` refuses verbs that load many of our modules."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests import verb_imports

OURS = verb_imports.SOURCE


def test_verbs_that_people_wait_for_load_few_modules() -> None:
    checked = _checked(OURS)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_verb_that_loads_more_is_named_with_its_modules(tmp_path: Path) -> None:
    copy = tmp_path / "hostler"
    shutil.copytree(OURS, copy, ignore=shutil.ignore_patterns("__pycache__", "train"))
    status = copy / "cli" / "look" / "status.py"
    text = status.read_text(encoding="utf-8")
    status.write_text(f"{text}\nfrom hostler.fleet import launcher, machines, pending\n", encoding="utf-8")
    checked = _checked(copy, "run", "status")
    assert checked.returncode == 1, checked.stderr
    [line] = checked.stdout.splitlines()
    assert line.startswith("hostler status loads ") and " hostler.fleet.machines " in line


def _checked(source: Path, *verbs: str) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, verb_imports.__file__, str(source), *verbs]
    return subprocess.run(words, capture_output=True, text=True, timeout=200, check=False)
