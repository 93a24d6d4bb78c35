"""A torch training killed again and again ends as one that never was: weights, metrics, early stopping.

The kills come at random moments, and as many inside a checkpoint's writing, which is then the newest one.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import hostler
import servers
from hostler.records import saved_folder

SOURCE = str(Path(hostler.__file__).resolve().parents[1])
SCRIPT = str(Path(__file__).with_name("exact_torch_training.py"))


@pytest.fixture(autouse=True)
def torch_is_here() -> None:
    if find_spec("torch") is None:
        servers.missing("torch is not installed")


def start(folder: Path, kind: str) -> subprocess.Popen[bytes]:
    folder.mkdir(exist_ok=True)
    env = {**os.environ, "PYTHONPATH": SOURCE}
    return subprocess.Popen([sys.executable, SCRIPT, str(folder), kind], env=env, stderr=subprocess.PIPE)


def finish(folder: Path, kind: str) -> dict[str, Any]:
    process = start(folder, kind)
    error = process.communicate(timeout=200)[1]
    assert process.returncode == 0, error.decode()
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def in_a_save(folder: Path) -> bool:
    """Whether a checkpoint is being written right now."""
    whole = set(saved_folder.committed(folder))
    return any(mark not in whole for mark in saved_folder.marks(folder))


def kill(folder: Path, kind: str, dice: random.Random, *, inside: bool) -> bool:
    """Start it, let it get somewhere, kill it; whether it was still running."""
    process = start(folder, kind)
    checkpoints = folder / "checkpoints"
    before = saved_folder.committed(checkpoints)[:1]
    deadline = time.monotonic() + 120
    while process.poll() is None and saved_folder.committed(checkpoints)[:1] == before:
        assert time.monotonic() < deadline
        time.sleep(0.005)
    time.sleep(dice.random() * 0.2)
    while inside and process.poll() is None and not in_a_save(checkpoints):
        pass
    alive = process.poll() is None
    process.kill()
    process.communicate()
    return alive


def killed_and_whole(tmp_path: Path, kind: str, kills: int, seed: int) -> None:
    whole = finish(tmp_path / "whole", kind)
    assert len(whole["metrics"]) == 96
    dice, hits = random.Random(seed), 0
    for n in range(kills * 3):
        if hits < kills and not (tmp_path / "killed" / "result.json").exists():
            hits += kill(tmp_path / "killed", kind, dice, inside=n % 2 == 1)
    assert hits >= min(kills, 2), "it was over before it could be killed"
    assert finish(tmp_path / "killed", kind) == whole
    said = (
        (tmp_path / "killed" / "said.txt").read_text() if (tmp_path / "killed" / "said.txt").exists() else ""
    )
    assert "passed over" not in said


@pytest.mark.parametrize("kind", ["mlp", "gpt"])
def test_killed_twice_it_ends_as_if_it_never_was(tmp_path: Path, kind: str) -> None:
    killed_and_whole(tmp_path, kind, 2, seed=3)


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["mlp", "gpt"])
def test_killed_twenty_times_it_ends_as_if_it_never_was(tmp_path: Path, kind: str) -> None:
    killed_and_whole(tmp_path, kind, 20, seed=11)
