"""CPU, memory and GPU use of one run as metrics, from one sample to the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hostler.worker import nvml
from hostler.worker.process import Process
from hostler.worker.usage import Usage, sample


class Meter:
    def __init__(
        self, process: Process, devices: Sequence[str], memory: int | None, clock: Callable[[], float]
    ) -> None:
        self._process, self._devices, self._memory, self._clock = process, devices, memory, clock
        self._last = (clock(), 0.0)

    def sample(self) -> Usage:
        gpus = [gpu for gpu in nvml.gpus() if gpu.uuid in self._devices] if self._devices else []
        return sample(self._process.pid, gpus, supervisor=self._process.supervisor, limit=self._memory)

    def metrics(self, use: Usage) -> dict[str, float]:
        """Named system/…, so that a reader can tell them from the run's own."""
        now, (then, before) = self._clock(), self._last
        self._last = (now, use.cpu_seconds)
        found = {"system/memory": float(use.rss), "system/processes": float(use.processes)}
        if now > then:
            found["system/cpu"] = max(0.0, use.cpu_seconds - before) / (now - then)
        if use.gpu_util is not None:
            found["system/gpu"] = use.gpu_util
        if use.gpu_memory is not None:
            found["system/gpu_memory"] = float(use.gpu_memory)
        return found
