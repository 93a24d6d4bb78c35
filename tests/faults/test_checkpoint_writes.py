"""SIGKILL before each single thing that a save does to the disk: a whole checkpoint is there every time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import hostler
from hostler.records.checkpoint import saved_folder
from hostler.sdk.checkpoint.checkpointer import Checkpointer
from hostler.sdk.checkpoint.policy import SavePolicy

SOURCE = str(Path(hostler.__file__).resolve().parents[1])

# Forks for each n: the child goes on from what is there, saves twice, and dies before the n-th call that
# changes the disk; then its parent looks at what is left.
SAVES = """
import json, os, signal, sys
from pathlib import Path
from hostler.sdk.checkpoint.checkpointer import Checkpointer
from hostler.sdk.checkpoint.policy import SavePolicy

folder = Path(sys.argv[1])

class Thing:
    n = 0
    def state_dict(self): return {"n": self.n, "bulk": bytes([self.n % 256] * 5000)}
    def load_state_dict(self, state):
        self.n = state["n"]
        assert state["bulk"] == bytes([self.n % 256] * 5000)

def deadly(call, count):
    def instead(*words, **more):
        count[0] -= 1
        if count[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*words, **more)
    return instead

def save_twice(n):
    thing, count = Thing(), [n]
    ck = Checkpointer(folder, policy=SavePolicy(keep=1, every_steps=1), say=print)
    ck.track(thing=thing)
    ck.restore()
    for name in ("open", "pwrite", "fsync", "replace", "mkdir", "unlink", "rmdir", "close"):
        setattr(os, name, deadly(getattr(os, name), count))
    for _ in range(2):
        thing.n += 1
        ck.save(thing.n, {"n": thing.n}, wait=True)
    ck.close()  # old ones are gone
    os._exit(0)

for n in range(1, 500):
    pid = os.fork()
    if pid == 0:
        save_twice(n)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    thing, said = Thing(), []
    ck = Checkpointer(folder, policy=SavePolicy(), say=said.append)
    found = ck.restore()
    ck.track(thing=thing)
    step, n = (found.step, found.state["n"]) if found else (0, 0)
    print(json.dumps({"code": code, "step": step, "n": n, "thing": thing.n, "said": said}), flush=True)
    if code == 0:
        break
"""


def test_kill_before_any_single_write_leaves_a_whole_checkpoint(tmp_path: Path) -> None:
    folder = tmp_path / "checkpoints"
    done = subprocess.run(
        [sys.executable, "-c", SAVES, str(folder)],
        env={**os.environ, "PYTHONPATH": SOURCE},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    deaths = [json.loads(line) for line in done.stdout.splitlines()]
    end = deaths.pop()
    assert end["code"] == 0 and len(deaths) > 30
    assert {one["code"] for one in deaths} == {-signal.SIGKILL}
    assert all(one["step"] == one["n"] == one["thing"] for one in deaths), "always one moment's state"
    assert all(one["said"] == [] for one in deaths), "nothing that was cut off looks damaged"
    steps = [one["step"] for one in [*deaths, end]]
    assert steps == sorted(steps) and steps[0] == 0 and steps[-1] > 2, "what was durable stays"
    assert len(saved_folder.marks(folder)) == 1, "nothing is left of those that died"


class Bulk:
    def __init__(self, size: int) -> None:
        self.size = size

    def state_dict(self) -> dict[str, str]:
        return {"text": "x" * self.size}

    def load_state_dict(self, state: dict[str, str]) -> None:
        self.size = len(state["text"])


def test_full_disk_lets_training_go_on_and_keeps_whole_checkpoints(
    small_disk: Path,
) -> None:
    said: list[str] = []
    bulk = Bulk(100_000)
    checkpointer = Checkpointer(small_disk / "c", policy=SavePolicy(every_steps=1), say=said.append)
    checkpointer.track(bulk=bulk)
    checkpointer.save(1, {}, wait=True)
    bulk.size = 3_000_000
    checkpointer.save(2, {}, wait=True)
    assert len(said) == 1 and "checkpoint of step 2 not saved" in said[0] and "No space left" in said[0]
    bulk.size = 200_000
    checkpointer.save(3, {}, wait=True)
    later, other = Checkpointer(small_disk / "c", policy=SavePolicy(), say=said.append), Bulk(0)
    found = later.restore()
    later.track(bulk=other)
    later.close()
    assert found and found.step == 3 and other.size == 200_000 and len(said) == 1
