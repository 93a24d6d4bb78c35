from __future__ import annotations

import os

import pytest

from hostler.attempt.nvml import GPU
from hostler.attempt.usage import Usage, UseMetrics, over_memory, sample, visible


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


@pytest.mark.parametrize(
    ("named", "seen"), [(None, [0, 1]), ("", []), ("1", [1]), ("1,0", [0, 1]), ("GPU-b", [1]), ("-1", [])]
)
def test_script_by_hand_sees_the_gpus_its_variable_names(named: str | None, seen: list[int]) -> None:
    gpus = [GPU(0, "GPU-aa"), GPU(1, "GPU-bb")]
    assert [gpu.index for gpu in visible(gpus, named)] == seen


def test_use_is_measured_from_where_counting_began() -> None:
    now = [100.0]
    metrics = UseMetrics(lambda: now[0], 10.0, spent=50.0)
    assert metrics.empty and not metrics.due
    now[0] += 2.0
    assert metrics.due
    found = metrics.of(Usage(cpu_seconds=53.0, rss=7, processes=2, gpu_util=40.0, gpu_memory=9))
    assert found == {
        "system/memory": 7.0,
        "system/processes": 2.0,
        "system/cpu": 1.5,
        "system/gpu": 40.0,
        "system/gpu_memory": 9.0,
    }
    assert not metrics.empty and not metrics.due
