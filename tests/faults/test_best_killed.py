"""A run that keeps its best state on a slow disk, killed again and again: the best at the end is the best."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

STEPS = 40
SCRIPT = """
import os, signal, sys, time
import hostler
from hostler.sdk.checkpoint import part

die = int(sys.argv[1])
write = part.write_file

def slow(path, buffers):
    time.sleep(0.02 if "best" in str(path) else 0.002)
    return write(path, buffers)

part.write_file = slow

class Model:
    n = 0
    def state_dict(self):
        return {"n": self.n}
    def load_state_dict(self, state):
        self.n = state["n"]

model = Model()
with hostler.start(save_every="3 steps") as run:
    run.track(model=model)
    run.keep_best("acc", "max")
    for step in run.steps(STEPS):
        model.n += step * step
        run.log(acc=-abs(step - STEPS * 0.8))
        time.sleep(0.003)
        if step >= die > 0 and run.step - first > 1:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def best(folder: Path) -> dict[str, object]:
    state = json.loads((folder / "output" / "best" / "acc" / "state-0000.json").read_text())
    return {"model": state["objects"]["model"], "state": state["state"]}


def run(folder: Path, die: int) -> int:
    (folder / "checkpoint").mkdir(parents=True, exist_ok=True)
    (folder / "output").mkdir(exist_ok=True)
    environment = {**os.environ, "HOSTLER_DIR": str(folder), "HOSTLER_RUN": "best"}
    script = SCRIPT.replace("STEPS", str(STEPS)).replace(
        "    for step in", "    first = run.step\n    for step in"
    )
    done = subprocess.run([sys.executable, "-c", script, str(die)], env=environment, timeout=120)
    return done.returncode


@pytest.mark.parametrize("seed", [1, *(pytest.param(n, marks=pytest.mark.soak) for n in (2, 3))])
def test_best_checkpoint_waiting_at_the_kill_is_found_again(tmp_path: Path, seed: int) -> None:
    assert run(tmp_path / "calm", 0) == 0
    draw, kills = random.Random(seed), 0
    for die in sorted(draw.sample(range(2, STEPS), 8)):
        code = run(tmp_path / "killed", die)
        assert code in (0, -signal.SIGKILL)
        kills += code != 0
    assert run(tmp_path / "killed", 0) == 0
    assert kills >= 4 and best(tmp_path / "killed") == best(tmp_path / "calm")
