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
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Watch = Callable[[dict[str, Any]], object]
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

def tell(folder, what, pid, **facts):
    event = {"folder": folder, "what": what, "pid": pid, "theirs": time.time(), **facts}
    print(json.dumps(event), flush=True)

def attempt(folder, doomed):
    pid = os.fork()
    if pid:
        tell(folder, "started", pid)
        status = os.waitpid(pid, 0)[1]
        tell(folder, "killed" if os.WIFSIGNALED(status) else "ended", pid, in_save=bool(doomed and doomed[2]))
        return status
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
    watch: Watch = lambda event: None,
) -> tuple[Outcome, Outcome]:
    """Undisturbed and killed, each in a folder of its own; what it leaves there is its result. Processes of
    both are known by the cache of the killed one."""
    for name in ("calm", "killed"):
        (root / name / "tmp").mkdir(parents=True)
        (root / name / "train.py").write_text(script)
    kept = {k: v for k, v in os.environ.items() if not k.startswith("HOSTLER_")}
    own = {"PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1", "HOSTLER_CACHE": str(root / "killed" / "cache")}
    said, errors = list[str](), root / "errors.log"
    with (
        errors.open("w") as stderr,
        subprocess.Popen(
            [sys.executable, "-c", PARENT, str(kills), str(seed), str(naps), str(in_saves), imports],
            cwd=root,
            env={**kept, **own},
            stdout=subprocess.PIPE,
            stderr=stderr,
            text=True,
        ) as parent,
    ):
        late = threading.Timer(280 + 20 * kills, parent.kill)
        late.start()
        try:
            assert parent.stdout is not None
            for line in parent.stdout:
                said.append(line)
                if line.startswith('{"folder"'):
                    watch(json.loads(line))
        except BaseException:
            parent.kill()
            raise
        finally:
            parent.wait()
            late.cancel()
    told = errors.read_text()
    assert parent.returncode == 0, ("".join(said) + told)[-6000:]
    calm, killed = (json.loads(line)["killed"] for line in said if line.startswith('{"killed"'))
    return Outcome(calm, root / "calm", told), Outcome(killed, root / "killed", told)
