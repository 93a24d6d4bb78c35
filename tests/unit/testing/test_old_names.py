"""Old names of modules: they work in a process that has imported nothing else, and warn once."""

from __future__ import annotations

import subprocess
import sys

import pytest

MOVED = {
    "hostler.testing.drill": "hostler.drill",
    "hostler.testing.gce": "hostler.emulators.gce",
    "hostler.testing.gcs": "hostler.emulators.gcs",
    "hostler.testing.k8s": "hostler.emulators.k8s",
}


def python(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize("old, new", MOVED.items(), ids=list(MOVED))
def test_old_name_is_the_new_module_and_warns_once(old: str, new: str) -> None:
    program = f"import {old} as a\nimport {old}\nimport {new} as b\nprint(a is b)"
    done = python("-W", "default", "-c", program)
    assert done.stdout == "True\n", done.stderr
    assert done.stderr.count(f"DeprecationWarning: {old} is now {new}") == 1


@pytest.mark.parametrize("old", ["hostler.testing.gce", "hostler.testing.k8s"])
def test_old_name_runs_as_a_program(old: str) -> None:
    done = python("-m", old, "--help")
    assert done.returncode == 0 and "usage" in done.stdout.lower(), done.stderr
