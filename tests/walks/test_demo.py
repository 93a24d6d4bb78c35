"""`hostler demo`, whole: what a person sees first has to work."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import hostler

PACKAGE = str(Path(hostler.__file__).parents[1])


def environ(tmp_path: Path) -> dict[str, str]:
    (tmp_path / "tmp").mkdir(exist_ok=True)
    own = {"HOSTLER_CACHE": str(tmp_path / "cache"), "TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": PACKAGE}
    return {**os.environ, **own}


def test_demo_loses_a_worker_but_no_run_and_suggests_commands(tmp_path: Path) -> None:
    here = tmp_path / "a folder; echo x"
    here.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "hostler", "demo"],
        cwd=here,
        env=environ(tmp_path),
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^>>> kill -9 \d+: the worker of (demo/\d), ", done.stdout, re.MULTILINE)
    assert re.search(r"^>>> demo/\d: attempt 2 goes on from checkpoint 1-\d", done.stdout, re.MULTILINE)
    assert "Best: demo/" in done.stdout

    commands = [line.strip() for line in done.stdout.partition("Next:")[2].splitlines() if line.strip()]
    assert len(commands) >= 4
    for command in commands:  # a person types them into a shell
        typed = subprocess.run(
            ["bash", "-c", command], cwd=here, env=environ(tmp_path), capture_output=True, text=True
        )
        assert typed.returncode == 0, command + typed.stdout + typed.stderr

    words = [sys.executable, "-m", "hostler", "status", "--json", "--store", ".hostler-demo/.hostler", "demo"]
    listed = subprocess.run(words, cwd=here, env=environ(tmp_path), capture_output=True, check=True)
    rows = json.loads(listed.stdout)
    assert sorted(row["attempt"] for row in rows) == [1, 1, 1, 1, 1, 2]
    assert all((row["state"], row["step"]) == ("done", 50) for row in rows)


def test_a_demo_whose_runs_fail_says_so_and_exits_1(tmp_path: Path) -> None:
    """A Python that refuses to start is the first on PATH."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").write_text("#!/bin/sh\nexit 9\n")
    (tmp_path / "bin" / "python").chmod(0o755)
    given = environ(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "hostler", "demo", "--folder", "demo"],
        cwd=tmp_path,
        env={**given, "PATH": f"{tmp_path / 'bin'}:{given['PATH']}"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 1
    assert "did not end well" in done.stderr
