from __future__ import annotations

import ctypes

import pytest

from hostler.attempt import nvml


def has_gpu() -> bool:
    return bool(nvml.read().gpus)


def test_machine_without_the_library_has_no_gpus_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvml, "LIBRARY", "libno-such-library.so.1")
    nvml._library.cache_clear()
    try:
        assert nvml.gpus() == []
        assert "libno-such-library.so.1" in nvml.read().problem
    finally:
        nvml._library.cache_clear()


def test_the_structures_are_as_large_as_the_driver_expects() -> None:
    sizes = [
        ctypes.sizeof(one) for one in (nvml._Memory, nvml._Memory2, nvml._Utilization, nvml._NvmlProcess)
    ]
    assert sizes == [24, 40, 8, 24]


@pytest.mark.gpu
@pytest.mark.skipif(not has_gpu(), reason="no NVIDIA GPU on this machine")
def test_a_real_gpu_tells_its_name_memory_and_driver() -> None:
    found = nvml.read()
    assert found.driver and not found.problem
    for gpu in found.gpus:
        assert gpu.uuid.startswith("GPU-") and gpu.name
        assert 0 <= gpu.memory_used <= gpu.memory_total and gpu.memory_total > 10**9
        assert 0 <= gpu.utilization <= 100
