"""A script by hand, killed with SIGKILL at random moments and started again until it ends by itself.

Heavy libraries are imported once, in a parent that forks each attempt: twenty kills cost no twenty imports. A
moment is a random time after a random one of the script's naps, so that slow machines kill no earlier.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent.parent / "src"

PARENT = """
import json, os, random, runpy, signal, sys, threading, time, traceback
script, kills, seed, most, imports = sys.argv[1:]
kills, seed, most = int(kills), int(seed), int(most)
for name in filter(None, imports.split(",")):
    __import__(name)
if "torch" in sys.modules:
    sys.modules["torch"].set_num_threads(1)

def doom(left, delay, sleep=time.sleep):
    def counted(seconds):
        nonlocal left
        left -= 1
        if left == 0:
            threading.Timer(delay, os.kill, (os.getpid(), signal.SIGKILL)).start()
        sleep(seconds)
    time.sleep = counted

chance, landed = random.Random(seed), 0
for attempt in range(10 * kills + 10):
    steps, delay = chance.randint(3, most), chance.uniform(0, 0.03)
    pid = os.fork()
    if pid == 0:
        sys.argv = [script]
        if landed < kills:
            doom(steps, delay)
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as error:
            os._exit(error.code if isinstance(error.code, int) else 0 if error.code is None else 1)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL:
        landed += 1
        continue
    code = os.waitstatus_to_exitcode(status)
    print(json.dumps({"killed": landed, "attempts": attempt + 1, "code": code}), flush=True)
    sys.exit(code)
"""


@dataclass(frozen=True)
class Outcome:
    killed: int
    output: str
    folder: Path

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())


def carry_out(
    folder: Path,
    script: str,
    *,
    kills: int = 0,
    naps: int = 12,
    seed: int = 0,
    imports: str = "torch,torch._dynamo",
) -> Outcome:
    """Until it has ended by itself; what it leaves in the current folder is its result."""
    folder.mkdir(parents=True)
    (folder / "train.py").write_text(script)
    own = {"HOSTLER_CACHE": folder / "cache", "TMPDIR": folder / "tmp", "XDG_RUNTIME_DIR": folder / "tmp"}
    (folder / "tmp").mkdir()
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HOSTLER_")}
    words = ["train.py", str(kills), str(seed or random.randrange(1 << 30)), str(naps), imports]
    done = subprocess.run(
        [sys.executable, "-c", PARENT, *words],
        cwd=folder,
        env={
            **kept,
            **{k: str(v) for k, v in own.items()},
            "PYTHONPATH": str(SOURCE),
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=280,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said[-6000:]
    found = json.loads(next(line for line in done.stdout.splitlines() if line.startswith('{"killed"')))
    return Outcome(found["killed"], said, folder)
