"""A torch training killed again and again ends as one that never was: weights, metrics, early stopping.

The kills come at random moments, and every second one inside the writing of a checkpoint.
"""

from __future__ import annotations

import random
import time
from importlib.util import find_spec
from pathlib import Path

import pytest

import servers
from hostler.records import saved_folder
from script_world import Scripts, line_of

SCRIPT = Path(__file__).with_name("exact_torch_training.py").read_text()


@pytest.fixture(autouse=True)
def torch_is_here() -> None:
    if find_spec("torch") is None:
        servers.missing("torch is not installed")


def scripts_in(folder: Path) -> Scripts:
    scripts = Scripts(folder)
    scripts.write(SCRIPT)
    return scripts


def outcome(scripts: Scripts) -> tuple[object, object]:
    row = scripts.row()
    end = scripts.state(row).end
    assert end is not None and row.state == "done"
    curves = {name: scripts.curve(row, name) for name in ("loss", "lr", "epoch/best")}
    assert len(curves["loss"]) == 96
    return end["result"], curves


def in_a_save(scripts: Scripts) -> bool:
    """Whether a checkpoint is being written right now."""
    try:
        return any(map(_half_written, (scripts.root / scripts.cache).glob("**/checkpoint")))
    except FileNotFoundError:  # it is over, and the folder gone while it was looked at
        return False


def _half_written(folder: Path) -> bool:
    whole = set(saved_folder.committed(folder))
    return any(mark not in whole for mark in saved_folder.marks(folder))


def killed(scripts: Scripts, kind: str, moment: float, *, inside: bool) -> bool:
    """Start it, let it get somewhere, kill it; False if it was done before."""
    with scripts.running(kind) as process:
        line_of(process, "begins")
        deadline = time.monotonic() + moment
        while process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.002)
        while inside and process.poll() is None and not in_a_save(scripts):
            pass
        if process.poll() is None:
            process.kill()
            return True
        assert process.returncode == 0, process.communicate()[1]
        return False


def killed_it_is_the_same(folder: Path, kind: str, kills: int, seed: int) -> None:
    whole, parts = scripts_in(folder / "whole"), scripts_in(folder / "parts")
    done = whole.run(kind)
    assert done.code == 0, done.err
    dice, hits = random.Random(seed), 0
    longest = 1.4 / kills  # seconds of a life: twenty of them get no further than two
    while hits < kills and killed(parts, kind, dice.uniform(0.0, longest), inside=hits % 2 == 1):
        hits += 1
    assert hits == kills, "it was over before it could be killed"
    done = parts.run(kind)
    assert done.code == 0 and "passed over" not in done.err, done.err
    assert outcome(parts) == outcome(whole)


@pytest.mark.parametrize("kind", ["mlp", "gpt"])
def test_killed_twice_it_ends_as_if_it_never_was(tmp_path: Path, kind: str) -> None:
    killed_it_is_the_same(tmp_path, kind, 2, seed=3)


@pytest.mark.soak
@pytest.mark.timeout(7200)  # each start imports torch
@pytest.mark.parametrize("kind", ["mlp", "gpt"])
def test_killed_twenty_times_it_ends_as_if_it_never_was(tmp_path: Path, kind: str) -> None:
    killed_it_is_the_same(tmp_path, kind, 20, seed=11)
