from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hostler.attempt.nvml import GPU
from hostler.spec.job import Job, Resources
from hostler.worker.claim.room import GpuLocks, Room
from hostler.worker.claim.slots import Device, Offer, Placement

HOLD = """
import sys
from pathlib import Path
from hostler.worker.claim.room import GpuLocks
locks = GpuLocks(Path(sys.argv[1]))
print(locks.acquire("GPU-1"), flush=True)
sys.stdin.read()
"""


def test_gpu_has_one_worker_and_a_killed_one_frees_it(tmp_path: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert other.stdout is not None and other.stdin is not None
    assert other.stdout.readline() == "True\n"
    locks = GpuLocks(tmp_path)
    assert not locks.acquire("GPU-1")
    assert locks.acquire("GPU-2")
    other.kill()
    other.wait()
    assert locks.acquire("GPU-1")
    assert locks.held() == ["GPU-1", "GPU-2"]
    other.stdout.close()
    other.stdin.close()


def test_asking_again_is_fine_and_releasing_lets_another_have_it(tmp_path: Path) -> None:
    one, two = GpuLocks(tmp_path), GpuLocks(tmp_path)
    assert one.acquire("MIG-GPU-1/2/0") and one.acquire("MIG-GPU-1/2/0")
    assert not two.acquire("MIG-GPU-1/2/0")
    one.close()
    assert two.acquire("MIG-GPU-1/2/0")
    two.close()


def test_device_with_a_waiting_process_is_no_other_workers(tmp_path: Path) -> None:
    """Its memory is in use there, and that by ours."""
    used = [GPU(index=0, uuid="GPU-1", memory_total=10**10)]
    offer = Offer(cpus=8, memory=1 << 40, gpus=(Device("GPU-1", 10**10),))
    mine, other = (Room(offer, GpuLocks(tmp_path), read=lambda: used) for _ in range(2))
    job = Job(name="job", command=("train",), resources=Resources(gpus=1.0))

    def free(room: Room) -> int:
        with room.reserved(lambda line: None) as found:
            return len(found.gpus)

    with mine.reserved(lambda line: None) as found:
        placement = mine.find(found, job)
        assert isinstance(placement, Placement)
        mine.take(placement, job)
    used[0] = GPU(
        index=0, uuid="GPU-1", memory_total=10**10, memory_used=8 * 10**9, processes=((1, 8 * 10**9),)
    )
    mine.lend(frozenset({"GPU-1"}))
    mine.give_back(placement)
    assert (free(mine), free(other)) == (1, 0)
    used[0] = GPU(index=0, uuid="GPU-1", memory_total=10**10)
    mine.lend(frozenset())
    assert (free(mine), free(other)) == (1, 1)
