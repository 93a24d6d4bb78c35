from __future__ import annotations

import os

from hostler.worker.run.nvml import GPU
from hostler.worker.run.usage import Usage, over_memory, sample


def test_this_process_has_memory_and_processor_time() -> None:
    found = sample(os.getpid())
    assert found.rss > 5_000_000 and found.processes >= 1 and found.cpu_seconds > 0
    assert found.gpu_util is None and found.gpu_memory is None


def test_over_a_limit_shared_pages_are_counted_once() -> None:
    assert 0 < sample(os.getpid(), limit=1).rss <= sample(os.getpid()).rss * 1.2


def test_a_process_that_is_gone_uses_nothing() -> None:
    assert sample(2**22 + 5) == Usage()


def test_gpu_memory_is_the_runs_where_the_driver_knows_it() -> None:
    gpus = [
        GPU(0, "a", memory_used=900, utilization=50, processes=((os.getpid(), 300), (1, 600))),
        GPU(1, "b", memory_used=100, utilization=100, processes=((os.getpid(), 100),)),
    ]
    found = sample(os.getpid(), gpus)
    assert (found.gpu_memory, found.gpu_util) == (400, 75.0)


def test_gpu_memory_is_the_devices_where_the_driver_cannot_tell() -> None:
    assert (
        sample(os.getpid(), [GPU(0, "a", memory_used=900, processes=((999_999_999, 800),))]).gpu_memory == 900
    )


def test_a_limit_is_passed_only_above_it() -> None:
    assert over_memory(Usage(rss=11), 10)
    assert not over_memory(Usage(rss=10), 10)
    assert not over_memory(Usage(rss=11), None)
