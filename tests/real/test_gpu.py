"""Runs on a real GPU: shared, left alone when it is a stranger's, measured, and out of memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hostler.attempt import nvml
from hostler.records.series import metrics
from hostler.spec.job import Resources
from hostler.worker.claim.room import Room, offer
from hostler.worker.process.warm import Warmth
from worker_world import World

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not nvml.gpus(), reason="there is no NVIDIA GPU on this machine"),
]

HOLD = """
import sys, time, torch
held = torch.empty({size}, dtype=torch.uint8, device="cuda")
torch.cuda.synchronize()
print("holds", flush=True)
time.sleep({seconds})
"""


def test_two_runs_share_one_gpu_and_log_their_use(world: World) -> None:
    script = HOLD.format(size=2_000_000_000, seconds=4) + (
        "import json, os; print(json.dumps({'gpus': os.environ['CUDA_VISIBLE_DEVICES']}))"
    )
    job = world.submit(script, runs=[{}, {}], resources=Resources(gpus=0.5))
    begun = time.monotonic()
    assert world.work(room=Room(offer(slots=None, cpus=None, gpus=None))) == 0
    first, second = (world.entries(job, i) for i in (0, 1))
    assert first[-1]["state"] == second[-1]["state"] == "done"
    assert time.monotonic() - begun < first[-1]["seconds"] + second[-1]["seconds"], "they ran side by side"
    points = metrics.read(world.store, job.run_id(0), world.state(job).attempt)
    used = [p.values["system/gpu_memory"] for p in points if "system/gpu_memory" in p.values]
    assert max(used) >= 2_000_000_000


def test_gpu_that_a_stranger_uses_is_left_alone_and_named(world: World) -> None:
    stranger = subprocess.Popen(
        [sys.executable, "-c", HOLD.format(size=3_000_000_000, seconds=60)], stdout=subprocess.PIPE
    )
    try:
        assert stranger.stdout and stranger.stdout.readline() == b"holds\n"
        job = world.submit("pass", resources=Resources(gpus=1))
        with world.working(room=Room(offer(slots=None, cpus=None, gpus=None))):
            deadline = time.monotonic() + 20
            while not any("left alone" in line for line in world.said):
                assert time.monotonic() < deadline
                time.sleep(0.1)
            assert world.state(job).state == "queued"
            stranger.kill()
            stranger.wait()
            while world.state(job).state != "done":
                assert time.monotonic() < deadline + 30, world.said
                time.sleep(0.1)
    finally:
        stranger.kill()


def test_a_gpu_out_of_memory_is_its_own_kind(world: World) -> None:
    job = world.submit(HOLD.format(size=10**13, seconds=0), resources=Resources(gpus=1), retries=0)
    world.work(room=Room(offer(slots=None, cpus=None, gpus=None)))
    end = world.entries(job)[-1]
    assert end["state"] == "failed" and end["failure"]["kind"] == "cuda-memory", json.dumps(end)


def test_warm_run_owns_the_gpu_and_its_parent_avoids_it(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "train.py").write_text(
        "import torch\nprint(torch.cuda.is_initialized(), torch.cuda.device_count())\n"
        "x = torch.ones(1 << 20, device='cuda')\nprint(int(x.sum()))\n"
    )
    warmth = Warmth(tmp_path / "warm", wait=True)
    logs: list[str] = []
    try:
        for n in range(3):
            process = warmth.start(
                [sys.executable, "train.py"],
                cwd=work,
                env=dict(os.environ),
                folder=tmp_path,
                log=tmp_path / f"log{n}",
                code=[],
            )
            found = process.wait(120)
            logs.append((tmp_path / f"log{n}").read_text())
            assert found is not None and found.code == 0, logs
        assert warmth.refusals() == []
        [entry] = warmth._entries.values()
        assert entry.pool is not None
        parent = entry.pool.spawner.pid
        assert not any("/dev/nvidia" in os.readlink(one) for one in Path(f"/proc/{parent}/fd").iterdir())
    finally:
        warmth.close()
    assert logs[0].startswith("False ") and logs[0] == logs[1] == logs[2]
