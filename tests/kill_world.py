"""A script by hand, undisturbed, and killed with SIGKILL at random moments and started again until it ends.

Heavy libraries are imported once, in a parent that forks each attempt: twenty kills cost no twenty imports. A
moment is a random time after a random one of the script's naps, so that slow machines kill no earlier; where
it is asked for, every second one is inside the writing of a checkpoint.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).parent.parent / "src"

PARENT = """
import json, os, random, runpy, signal, sys, threading, time, traceback
kills, seed, most, in_saves, imports = sys.argv[1:]
kills, seed, most, in_saves = int(kills), int(seed), int(most), in_saves == "True"
for name in filter(None, imports.split(",")):
    __import__(name)
if "torch" in sys.modules:
    sys.modules["torch"].set_num_threads(1)

def doom(left, delay, in_save, sleep=time.sleep):
    def die():
        while in_save and not saving():
            sleep(0)
        os.kill(os.getpid(), signal.SIGKILL)
    def counted(seconds):
        nonlocal left
        left -= 1
        if left == 0:
            threading.Timer(delay, die).start()
        sleep(seconds)
    time.sleep = counted

def saving():
    from pathlib import Path
    from hostler.records.checkpoint import saved_folder
    for folder in Path("cache").glob("**/checkpoint"):
        try:
            whole = set(saved_folder.committed(folder))
            if any(mark not in whole for mark in saved_folder.marks(folder)):
                return True
        except FileNotFoundError:  # it is over
            continue
    return False

def attempt(folder, doomed):
    pid = os.fork()
    if pid:
        return os.waitpid(pid, 0)[1]
    here = os.path.abspath(folder)
    os.environ.update(HOSTLER_CACHE=here + "/cache", TMPDIR=here + "/tmp", XDG_RUNTIME_DIR=here + "/tmp")
    os.chdir(here)
    sys.argv = ["train.py"]
    if doomed:
        doom(*doomed)
    try:
        runpy.run_path("train.py", run_name="__main__")
    except SystemExit as error:
        os._exit(error.code if isinstance(error.code, int) else 0 if error.code is None else 1)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)

def until_done(folder, kills):
    chance, landed = random.Random(seed), 0
    while True:
        moment = chance.randint(3, most), chance.uniform(0, 0.03)
        doomed = (*moment, in_saves and landed % 2 == 1) if landed < kills else None
        status = attempt(folder, doomed)
        if not (os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGKILL):
            return landed, os.waitstatus_to_exitcode(status)
        landed += 1

for folder, count in (("calm", 0), ("killed", kills)):
    landed, code = until_done(folder, count)
    print(json.dumps({"killed": landed}), flush=True)
    if code:
        sys.exit(code)
"""


@dataclass(frozen=True)
class Outcome:
    killed: int
    folder: Path
    said: str  # of both, on stderr

    def read(self, name: str) -> Any:
        return json.loads((self.folder / name).read_text())


def carry_out(
    root: Path,
    script: str,
    *,
    kills: int,
    naps: int,
    seed: int,
    imports: str = "torch,torch._dynamo",
    in_saves: bool = False,
) -> tuple[Outcome, Outcome]:
    """Undisturbed and killed, each in a folder of its own; what it leaves there is its result."""
    for name in ("calm", "killed"):
        (root / name / "tmp").mkdir(parents=True)
        (root / name / "train.py").write_text(script)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HOSTLER_")}
    done = subprocess.run(
        [sys.executable, "-c", PARENT, str(kills), str(seed), str(naps), str(in_saves), imports],
        cwd=root,
        env={**kept, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280 + 20 * kills,
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-6000:]
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"killed"')]
    calm, killed = (one["killed"] for one in said)
    return Outcome(calm, root / "calm", done.stderr), Outcome(killed, root / "killed", done.stderr)
