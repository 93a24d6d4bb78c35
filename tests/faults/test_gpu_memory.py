"""Runs that die of memory on a small GPU: tried on a larger one, once, and the sweep remembers it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hostler.attempt import nvml
from hostler.attempt.nvml import GPU
from hostler.records.launch import launches
from hostler.records.launch.launches import Generation
from hostler.records.run import heartbeats
from hostler.records.sweep import outgrown_gpus
from hostler.spec.job import Job, Resources
from hostler.worker.claim.room import GpuLocks, Room
from hostler.worker.claim.slots import Device, Offer
from worker_world import World, until

GB = 10**9
SMALL, LARGE = GPU(0, "GPU-small", memory_total=16 * GB), GPU(1, "GPU-large", memory_total=40 * GB)
# Takes as much memory as its parameter says.
SCRIPT = """
import os, sys
has = {"GPU-small": 16, "GPU-large": 40}[os.environ["CUDA_VISIBLE_DEVICES"]]
if int(sys.argv[-1]) > has:
    print("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", file=sys.stderr)
    raise SystemExit(1)
"""


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setattr(nvml, "gpus", lambda: [SMALL, LARGE])
    return World(tmp_path)


def room(world: World, gpu: GPU) -> Room:
    offer = Offer(cpus=8, memory=1 << 40, gpus=(Device(gpu.uuid, gpu.memory_total),))
    return Room(offer, GpuLocks(world.root / "locks"), read=lambda: [gpu])


def swept(world: World, *needs: int, **given: Any) -> Job:
    given = {"resources": Resources(gpus=1), **given}
    return world.submit(SCRIPT, runs=[{"need": need} for need in needs], **given)


def seen_elsewhere(world: World, gpu: GPU) -> None:
    """A worker with this GPU that serves every sweep."""
    facts = {"room": {"gpus": 1, "gpu_memory": gpu.memory_total}, "only": []}
    heartbeats.beat(world.store, "other", 1, facts)


def states(world: World, job: Job) -> list[str]:
    return [world.state(job, n).state for n in range(job.count)]


def test_run_out_of_memory_waits_for_a_larger_gpu(world: World) -> None:
    job = swept(world, 8, 24)
    seen_elsewhere(world, LARGE)
    assert world.work(room=room(world, SMALL)) == 0
    assert states(world, job) == ["done", "queued"]  # the small one leaves it alone, and leaves
    assert [one["outgrew"] for one in world.entries(job, 1) if one.get("outgrew")] == [16 * GB]
    assert any("asks for 16.8 GB on a GPU, this machine's GPUs have less" in line for line in world.said)
    assert world.work(room=room(world, LARGE)) == 0
    assert states(world, job) == ["done", "done"]
    assert outgrown_gpus.largest(world.store, job.name, job.source.mark) == 0  # another one is done on it


def test_sweep_remembers_a_gpu_that_none_is_done_on(world: World) -> None:
    job = swept(world, 24, 25, 26, 27)
    seen_elsewhere(world, LARGE)
    assert world.work(room=room(world, SMALL)) == 0
    tried = [len(world.entries(job, n)) for n in range(4)]
    assert sorted(tried) == [0, 0, 2, 2], tried  # two were enough to know
    assert outgrown_gpus.largest(world.store, job.name, job.source.mark) == 16 * GB
    assert world.work(room=room(world, LARGE)) == 0
    assert states(world, job) == ["done"] * 4


def test_run_too_large_for_both_fails_after_the_second(world: World) -> None:
    job = swept(world, 99)
    seen_elsewhere(world, LARGE)
    world.work(room=room(world, SMALL))
    world.work(room=room(world, LARGE))
    assert states(world, job) == ["failed"]
    last = world.entries(job)[-1]
    assert "on a larger GPU, too" in last["failure"]["message"] and last["attempts"] == 2
    assert world.state(job).tally.failures == 0


def test_no_larger_gpu_leaves_the_run_to_its_retries(world: World) -> None:
    job = swept(world, 24, retries=1)
    seen_elsewhere(world, SMALL)
    world.work(room=room(world, SMALL))
    assert states(world, job) == ["failed"] and world.entries(job)[-1]["attempts"] == 2


def test_launch_that_may_get_a_larger_gpu_keeps_the_run(world: World) -> None:
    job = swept(world, 24)
    one = Generation("burst", 1, "token", 2, 1.0, 1.0, 9e9, (job.name,), gpu_memory=40 * GB)
    assert launches.begin(world.store, one)
    world.work(room=room(world, SMALL), fleet="burst/1")
    assert states(world, job) == ["queued"]


def test_part_of_a_gpu_gives_way_to_a_whole_one(world: World) -> None:
    marks = (
        "import os, sys\ntried = os.environ['MARKS'] + '/tried'\nhas = 16 if os.path.exists(tried) else 4\n"
    )
    script = marks + "open(tried, 'w').close()\n" + SCRIPT.split("\n", 3)[3]
    job = world.submit(script, runs=[{"need": 12}], resources=Resources(gpus=0.25))
    assert world.work(room=room(world, SMALL)) == 0
    assert states(world, job) == ["done"] and world.entries(job)[1]["outgrew"] == 4 * GB
    assert world.entries(job)[-1]["gpu"]["share"] == 1.0


def test_small_machine_stays_until_the_larger_one_has_come(world: World) -> None:
    """Else the last one to leave would take down the launch that a larger machine is coming to."""
    world.quick(idle=60.0)
    job = swept(world, 24)
    one = Generation("burst", 1, "token", 2, 1.0, 1.0, 9e9, (job.name,), billed=True, gpu_memory=40 * GB)
    assert launches.begin(world.store, one)
    asked: list[int] = []

    def enlarge(size: int, hourly: float, *, instead: bool = False) -> str:
        asked.append(size)
        return "large-1"

    terms = {"fleet": "burst/1", "waits_free": False}
    with world.working(room=room(world, SMALL), enlarge=enlarge, **terms) as small:
        until(lambda: asked == [16 * GB])
        until(lambda: any("large-1 is asked for" in line for line in world.said))
        assert not small.ended.looked
        assert world.work(room=room(world, LARGE), **terms) == 0
        until(lambda: any("no run is left" in line for line in world.said))
    assert states(world, job) == ["done"]
