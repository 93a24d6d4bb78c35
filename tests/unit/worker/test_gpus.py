from __future__ import annotations

import pytest

from hostler.attempt.nvml import GPU
from hostler.worker.claim.gpus import strangers, visible

A = GPU(0, "GPU-aa11-1", "T4", 16_000_000_000)
B = GPU(1, "GPU-aa22-2", "T4", 16_000_000_000)
C = GPU(2, "GPU-bb33-3", "A100", 80_000_000_000, mig=("MIG-1", "MIG-2"))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("0,1", ["GPU-aa11-1", "GPU-aa22-2"]),
        ("1,0", ["GPU-aa22-2", "GPU-aa11-1"]),
        ("1", ["GPU-aa22-2"]),
        ("", []),
        ("-1", []),
        ("NoDevFiles", []),
        ("0,7,1", ["GPU-aa11-1"]),
        ("0,-1,1", ["GPU-aa11-1"]),
        ("0,0,1", ["GPU-aa11-1"]),
        (" 1 , 0 ", ["GPU-aa22-2", "GPU-aa11-1"]),
        ("GPU-aa22-2", ["GPU-aa22-2"]),
        ("GPU-aa2", ["GPU-aa22-2"]),
        ("GPU-aa", []),
        ("GPU-zz", []),
        ("MIG-2", ["MIG-2"]),
        ("MIG-GPU-x/1/0", ["MIG-GPU-x/1/0"]),
    ],
)
def test_the_variable_is_read_as_cuda_reads_it(value: str, expected: list[str]) -> None:
    assert [gpu.uuid for gpu in visible([A, B, C], value)] == expected


def test_unset_shows_everything_and_a_cut_gpu_as_its_slices() -> None:
    assert [gpu.uuid for gpu in visible([A, C], None)] == ["GPU-aa11-1", "MIG-1", "MIG-2"]


def test_gpu_with_a_strangers_process_is_skipped_naming_both() -> None:
    busy = GPU(3, "GPU-x", memory_used=2 * 10**9, processes=((41, 10**9), (42, 10**9)))
    message = strangers(busy, {41})
    assert "GPU 3" in message and "42" in message and "41" not in message and "1.0 GB" in message


def test_our_own_processes_and_small_strangers_are_no_reason() -> None:
    busy = GPU(3, "GPU-x", memory_used=2 * 10**9, processes=((41, 2 * 10**9), (42, 10**6)))
    assert strangers(busy, {41}) == ""


def test_memory_in_use_by_invisible_processes_is_a_stranger_too() -> None:
    assert "someone" in strangers(GPU(0, "GPU-x", memory_used=10**9), set())
    assert strangers(GPU(0, "GPU-x", memory_used=10**9), {7}) == ""
