"""SIGKILL before each single thing that a save does to the disk: a whole checkpoint is restored every time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import hostler
from hostler.records import saved_folder
from hostler.sdk.checkpointer import Checkpointer, Restored
from hostler.sdk.policy import Policy

SOURCE = str(Path(hostler.__file__).resolve().parents[1])

# Goes on from what is there, saves twice, and dies before the n-th call that changes the disk.
SAVER = """
import os, signal, shutil, sys
from pathlib import Path
from hostler.sdk import part, target
from hostler.sdk.checkpointer import Checkpointer
from hostler.sdk.policy import Policy

left = int(sys.argv[2])
def deadly(call):
    def instead(*words, **more):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*words, **more)
    return instead

class Thing:
    n = 0
    def state_dict(self): return {"n": self.n, "bulk": bytes(self.n for _ in range(5000))}
    def load_state_dict(self, state):
        self.n = state["n"]
        assert state["bulk"] == bytes([self.n] * 5000)

thing = Thing()
ck = Checkpointer(Path(sys.argv[1]), policy=Policy(keep=1), say=print)
ck.track(thing=thing)
found = ck.restore()
for name in ("open", "pwrite", "fsync", "replace", "mkdir", "unlink", "rmdir", "close"):
    setattr(os, name, deadly(getattr(os, name)))
for _ in range(2):
    thing.n += 1
    ck.save(thing.n, {"n": thing.n}, wait=True)
print("saved", thing.n)
"""


def restored(folder: Path) -> Restored | None:
    said: list[str] = []
    found = Checkpointer(folder, policy=Policy(), say=said.append).restore()
    assert said == [], "nothing that was cut off looks damaged"
    return found


def test_killed_before_any_single_write_there_is_always_a_whole_one(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": SOURCE}
    folder = tmp_path / "checkpoints"
    newest, deaths = 0, 0
    for n in range(1, 400):
        done = subprocess.run(
            [sys.executable, "-c", SAVER, str(folder), str(n)], env=env, capture_output=True, text=True
        )
        found = restored(folder)
        now = found.step if found else 0
        assert now >= newest, "what was durable stays"
        assert not found or found.state == {"n": now}
        newest = now
        if done.returncode == 0:
            break
        assert done.returncode == -signal.SIGKILL, done.stderr
        deaths += 1
    else:
        pytest.fail("it never came to its end")
    assert deaths > 20 and done.stdout.split()[-1] == str(newest)
    assert len(saved_folder.marks(folder)) == 1, "nothing is left of those that died"
