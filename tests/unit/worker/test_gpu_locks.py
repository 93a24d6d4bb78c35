from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from hostler.worker.claim.room import GpuLocks

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
