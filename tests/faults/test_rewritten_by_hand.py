"""A script by hand that rewrites a file in place, killed at any moment: a whole version comes back."""

from __future__ import annotations

import os
import random
import shutil
import signal
import time
from pathlib import Path

import pytest

from hostler.records.checkpoint import checkpoints
from script_world import SOURCE, Scripts, line_of

TORN = 3

# Every version is one number over and over; a restored file that holds two is torn.
REWRITE = """
import random, struct, sys, time
import hostler

size, goal, seed, rest = 4 << 20, int(sys.argv[1]), time.time_ns(), 0.7
random.seed(seed)
with hostler.start({"size": size}) as run:
    path = run.checkpoint_dir / "model.bin"
    version = 0
    if path.exists():
        data = path.read_bytes()
        version = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else -1
        if data != struct.pack("<Q", version) * (size // 8):
            print("torn", flush=True)
            sys.exit(TORN)
    print("begins", version, flush=True)
    file = open(path, "r+b" if version else "wb", buffering=0)
    while version < goal:
        version += 1
        file.seek(0)
        for _ in range(16):
            file.write(struct.pack("<Q", version) * (size // 8 // 16))
            time.sleep(0.01)
        run.log(version=version)
        print("version", version, flush=True)
        time.sleep(random.choice([0, 0.02, rest]))
    run.finish(version=version)
print("ends", version, flush=True)
""".replace("TORN", str(TORN))

COUNT = """
import time
import hostler

class Counter:
    n = 0
    def state_dict(self): return {"n": self.n}
    def load_state_dict(self, state): self.n = state["n"]

counter = Counter()
with hostler.start(save_every="1 steps") as run:
    run.track(counter=counter)
    for step in run.steps(40):
        counter.n += 1
        print("step", step, flush=True)
        time.sleep(0.05)
    run.finish(total=counter.n)
"""

NO_LINKS = """
import errno, os
link = os.link
def refuse(source, target, **more):
    if os.path.join("cache", "alone") in os.fspath(target):
        raise OSError(errno.EPERM, "Operation not permitted", os.fspath(source))
    return link(source, target, **more)
os.link = refuse
"""


@pytest.fixture(params=["links", "no-links"])
def scripts(request: pytest.FixtureRequest, tmp_path: Path) -> Scripts:
    """A project whose files are saved whenever they rest, on a disk with hard links or without."""
    made = Scripts(tmp_path, env={"HOSTLER_SETTLE": "0.3"})
    made.write("checkpoint: {every: 0.1s}\n", "hostler.yaml")
    if request.param == "no-links":
        (tmp_path / "disk").mkdir()
        (tmp_path / "disk" / "sitecustomize.py").write_text(NO_LINKS)
        made.env["PYTHONPATH"] = os.pathsep.join([str(tmp_path / "disk"), SOURCE])
    return made


def kill_often(scripts: Scripts, kills: int, rng: random.Random) -> list[int]:
    """Start it again and again, killed at random moments; the versions that it went on from."""
    begun = list[int]()
    for _ in range(kills):
        with scripts.running("1000") as process:
            line = line_of(process, " ")
            assert line.startswith("begins"), line
            begun.append(int(line.split()[1]))
            time.sleep(rng.uniform(0.1, 1.6))
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=60)
    return begun


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kills", [5, pytest.param(20, marks=pytest.mark.soak)])
def test_file_rewritten_in_place_by_hand_restores_whole(scripts: Scripts, kills: int) -> None:
    scripts.write(REWRITE)
    begun = kill_often(scripts, kills, random.Random(kills))
    done = scripts.run(str(begun[-1] + 5))
    assert done.code == 0, done.out + done.err
    assert begun == sorted(begun) and int(done.out.split()[1]) > 0, "it always began from the beginning"
    target = scripts.root / "restored"
    row = scripts.row()
    assert row.state == "done" and checkpoints.restore_newest(scripts.opened(), row.id, target, before=10**6)
    assert set((target / "model.bin").read_bytes()[::8]) == {int(done.out.split()[-1]) & 255}


def test_library_checkpoint_by_hand_needs_no_hard_links(scripts: Scripts) -> None:
    scripts.write(COUNT)
    with scripts.running() as process:
        line_of(process, "step 12")
        scripts.kill(process)
    shutil.rmtree(scripts.root / "cache" / "alone")  # the store alone has it
    done = scripts.run()
    assert done.code == 0 and "goes on from step" in done.err, done.err
    assert "step 0\n" not in done.out and scripts.row().state == "done"
