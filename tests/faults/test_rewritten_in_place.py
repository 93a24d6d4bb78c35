"""A file that is rewritten in place, killed at any moment: what is restored is always one whole version."""

from __future__ import annotations

import random
import signal
import sys
import time
from pathlib import Path

import pytest
from killer import RUN, SUPERVISOR, WORKER, Farm, farm, keys_of, often, outcome, send, until

from hostler.records.checkpoint import checkpoints
from hostler.records.run.log import RunKey, RunLog
from hostler.spec.job import Job

TORN = 3

# Every version is one number over and over; a restored file that holds two is torn.
SCRIPT = """
import json, os, random, struct, sys, time
size, goal, rest = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
path = os.path.join(os.environ["HOSTLER_CHECKPOINT_DIR"], "model.bin")
version = 0
if os.path.exists(path):
    data = open(path, "rb").read()
    version = struct.unpack("<Q", data[:8])[0] if len(data) >= 8 else -1
    if data != struct.pack("<Q", version) * (size // 8):
        sys.exit(TORN)
file = open(path, "r+b" if version else "wb", buffering=0)
while version < goal:
    version += 1
    file.seek(0)
    for _ in range(16):
        file.write(struct.pack("<Q", version) * (size // 8 // 16))
        time.sleep(0.005)
    print(json.dumps({"step": version, "version": version}))
    time.sleep(random.choice([0, 0.02, rest]))
""".replace("TORN", str(TORN))


def newest(made: Farm, key: RunKey) -> list[checkpoints.Place]:
    return checkpoints.committed(made.store, key.run)[:1]


def kill_at_random(made: Farm, key: RunKey, rng: random.Random, kills: int) -> int:
    """Kill after something new was saved, at whatever moment that then is; how often."""
    done, known = 0, list[checkpoints.Place]()
    while done < kills:
        until(lambda known=known: newest(made, key) != known or not made.is_open(key), 120, why=made.said)  # type: ignore[misc]
        if not made.is_open(key):
            return done
        known = newest(made, key)
        time.sleep(rng.uniform(0.0, 0.6))
        victims = sorted(made.processes(rng.choice([RUN, RUN, WORKER, SUPERVISOR])))
        if victims:
            send(rng.choice(victims), signal.SIGKILL)
            done += 1
    return done


def rewrite(tmp_path: Path, *, megabytes: int, kills: int, goal: int, rest: float, seed: int) -> None:
    with farm(str(tmp_path / "store"), tmp_path) as made:
        (made.code / "rewrite.py").write_text(SCRIPT)
        command = (sys.executable, "rewrite.py", str(megabytes << 20), str(goal), str(rest))
        job = made.submit(Job(name="rewrite", command=command, **often(retries=0)))  # type: ignore[arg-type]
        [key] = keys_of(job)
        made.start()
        done = kill_at_random(made, key, random.Random(seed), kills)
        made.finish(job, workers=1, seconds=60 + goal * megabytes / 5)
        entries = RunLog(made.store, key).read_on().entries
        assert TORN not in [entry.get("exit") for entry in entries], "a torn file was restored"
        found = outcome(made.store, key)
        assert found.state.state == "done" and found.end["restored"]
        assert done == kills
        # At most one attempt for each kill: a worker may die while it saves what its dead run left.
        assert found.state.attempts > 1
        assert found.files["model.bin"] == goal.to_bytes(8, "little") * (megabytes << 17)
        assert found.points["version"] == [(n, float(n)) for n in range(1, goal + 1)]


def test_a_file_rewritten_in_place_is_restored_whole(tmp_path: Path) -> None:
    rewrite(tmp_path, megabytes=20, kills=4, goal=30, rest=0.5, seed=1)


@pytest.mark.soak
@pytest.mark.timeout(1800)
def test_a_large_file_rewritten_in_place_is_restored_whole(tmp_path: Path) -> None:
    rewrite(tmp_path, megabytes=200, kills=20, goal=120, rest=4.0, seed=2)
