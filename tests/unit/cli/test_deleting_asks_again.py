"""`gc` and `rm --empty` answered late: what became needed since the question is left, in one line."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from acting_world import World, world
from hostler.records import layout
from hostler.records.checkpoint import checkpoints
from hostler.records.rows import rows
from hostler.records.sweep import sweeps
from hostler.store import Store

__all__ = ["world"]

TRAIN = """
import os, sys
from pathlib import Path
print('{"step": 1, "loss": %s}' % sys.argv[2])
Path(os.environ["HOSTLER_CHECKPOINT_DIR"], "weights.txt").write_text("w")
"""
SWEEP = """
name: old
command: python train.py
metric: {name: loss, goal: min}
parameters:
  loss: [3, 1, 2]
"""


class Asked:
    """A command that has asked its question and waits for the answer."""

    def __init__(self, world: World, *words: str, **env: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "hostler", *words],
            cwd=world.folder,
            env={**world.env, **env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._process.stderr is not None
        self.question = b""
        while b"[y/N]" not in self.question:
            letters = os.read(self._process.stderr.fileno(), 4096)
            assert letters, self.question
            self.question += letters

    def answer(self, text: str) -> tuple[int, str]:
        """Exit code and what it says after that."""
        out, err = self._process.communicate(text.encode(), timeout=60)
        return self._process.returncode, (out + err).decode()


def swept(world: World) -> None:
    world.write("train.py", TRAIN)
    world.write("old.yaml", SWEEP)
    world.ok("sweep", "-y", "old.yaml")
    world.ok("wait", "old")


def has_checkpoint(store: Store, name: str) -> bool:
    [row] = [row for row in rows(store, trash=True) if row.name == name]
    return bool(checkpoints.committed(store, row.id))


def test_gc_leaves_checkpoint_named_during_question(world: World) -> None:
    swept(world)
    asked = Asked(world, "gc", HOSTLER_GC_GRACE="0")
    assert b"checkpoints of 2 runs" in asked.question
    old = sweeps.load(world.store, "old")
    later = type(old)("new", old.command, runs=({},), source=old.source, init={"run": "old/0"})
    assert sweeps.submit(world.store, later)
    code, said = asked.answer("y\n")
    assert code == 0 and "hostler: kept, because they are needed by now: old/0\n" in said
    assert [has_checkpoint(world.store, f"old/{n}") for n in range(3)] == [True, True, False]


def test_gc_leaves_code_and_data_reused_during_question(world: World) -> None:
    """Code and data of a deleted sweep are old; the same are submitted again while gc asks."""
    world.write("hostler.yaml", "data: {words: words.txt}\n")
    world.write("words.txt", "one two\n")
    swept(world)
    world.ok("rm", "-y", "old")
    world.ok("rm", "--empty", "-y")
    days_ago = time.time() - 3 * 86400
    folders = [world.folder / ".hostler" / name for name in ("code", "library", "data")]
    blobs = [path for folder in folders for path in folder.iterdir()]
    for path in blobs:
        os.utime(path, (days_ago, days_ago))
    asked = Asked(world, "gc")
    assert b"nothing names: 3" in asked.question
    world.ok("sweep", "-y", "old.yaml")
    code, said = asked.answer("y\n")
    assert code == 0 and "needed by now" in said and "code/" in said and "data/" in said
    assert all(path.exists() and path.stat().st_mtime > days_ago + 86400 for path in blobs)
    world.ok("wait", "old")


def test_rm_empty_leaves_run_restored_during_question(world: World) -> None:
    swept(world)
    world.ok("rm", "-y", "old")
    asked = Asked(world, "rm", "--empty")
    world.ok("rm", "--restore", "old/0")
    code, said = asked.answer("y\n")
    assert code == 0 and "hostler: kept, because they are needed by now: old/0\n" in said
    assert "old/0: deleted" not in said and "old/1: deleted" in said
    assert [has_checkpoint(world.store, f"old/{n}") for n in range(3)] == [True, False, False]
    assert [row.name for row in rows(world.store)] == ["old/0"]


def test_rm_empty_leaves_run_named_during_question(world: World) -> None:
    swept(world)
    world.ok("rm", "-y", "old")
    asked = Asked(world, "rm", "--empty")
    old = sweeps.load(world.store, "old")
    later = type(old)("new", old.command, runs=({},), source=old.source, init={"run": "old/2"})
    assert sweeps.submit(world.store, later)
    code, said = asked.answer("y\n")
    assert code == 0 and "needed by now: old/2\n" in said
    assert [has_checkpoint(world.store, f"old/{n}") for n in range(3)] == [False, False, True]
    refused = world.cli("rm", "--empty", "-y", "old/2")
    assert refused.returncode == 1 and "new starts from it" in refused.stderr


def test_rm_empty_leaves_cut_off_sweep_submitted_during_question(world: World) -> None:
    """A deletion that was cut off left a sweep without a spec; somebody submits it anew meanwhile."""
    swept(world)
    old = sweeps.load(world.store, "old")
    half = type(old)("half", old.command, runs=({},), source=old.source)
    assert sweeps.submit(world.store, half)
    spec = world.store.get(layout.spec("half", 1)).data
    sweeps.halt(world.store, "half", "for a test")
    world.store.delete(layout.spec("half", 1))
    world.ok("rm", "-y", "old")
    asked = Asked(world, "rm", "--empty")
    world.store.put(layout.spec("half", 1), spec)
    assert asked.answer("y\n")[0] == 0
    assert Path(world.folder, ".hostler", layout.spec("half", 1)).exists()
