"""CPU, memory and GPU use of one run as metrics, from one sample to the next.

Samples come soon and then ever more rarely, so that a run of a second has some and a run of a week not too
many; a shorter one is measured by its end. Where memory is limited it is weighed every second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hostler.attempt import nvml
from hostler.attempt.nvml import GPU
from hostler.attempt.usage import SHORTEST, Usage, UseMetrics, is_time
from hostler.worker.process.process import Process
from hostler.worker.run.exit import Exit

WEIGH = 1.0  # seconds between two looks at the memory of a run that has a limit
GROWN = 1.02  # times the peak before: less is not growth
SETTLED = 60.0  # seconds without growth after which a peak is believed, or half of the run's life if longer


class Peak:
    """The most that a run has used, from sample to sample."""

    def __init__(self, clock: Callable[[], float], *, whole: bool = True) -> None:
        """`whole`: what is in use on its GPUs is its own."""
        self._clock, self._whole = clock, whole
        self._begun = self._grew = clock()
        self._over = False
        self.cpus, self.memory, self.gpu_memory, self.held = 0.0, 0, 0, 0  # `held`: memory right now

    @property
    def settled(self) -> bool:
        """Whether it has ended well, or has not grown for long."""
        now = self._clock()
        return self._over or now - self._grew >= max(SETTLED, (now - self._begun) / 2)

    def take(self, use: Usage) -> None:
        now, gpu = self._clock(), use.gpu_memory or 0
        gpu = gpu if use.gpu_own or self._whole else 0
        if use.rss > self.memory * GROWN or gpu > self.gpu_memory * GROWN:
            self._grew = now
        self.held, self.memory = use.rss, max(self.memory, use.rss)
        self.gpu_memory = max(self.gpu_memory, gpu)
        self.cpus = use.cpu_seconds / max(now - self._begun, SHORTEST)

    def end(self, exit: Exit) -> None:
        """Only a run that ended well shows what others take."""
        self._over, self.held = exit.code == 0, 0
        self.memory = max(self.memory, exit.max_rss)
        self.cpus = exit.cpu_seconds / max(exit.seconds, SHORTEST)


class GpuUse:
    """Use of a run's GPUs, from sample to sample."""

    def __init__(self, devices: Sequence[str]) -> None:
        self._devices = devices
        self._samples, self._sum, self._used = 0, 0.0, 0

    def take(self, use: Usage) -> None:
        if use.gpu_util is not None:
            self._samples, self._sum = self._samples + 1, self._sum + use.gpu_util
            self._used = max(self._used, use.gpu_memory or 0)

    def facts(self, share: float) -> dict[str, float]:
        """Bytes of its smallest GPU, the share of it that the run had, and how much of it was in use: percent
        of the time, bytes. Nothing for a run without GPUs."""
        if not self._devices:
            return {}
        sizes = [gpu.memory_total for gpu in nvml.gpus() if gpu.uuid in self._devices]
        used = {"use": round(self._sum / self._samples, 1), "used": self._used} if self._samples else {}
        return {"memory": min(sizes, default=0), "share": share * len(self._devices), **used}


class Meter:
    def __init__(
        self,
        process: Process,
        devices: Sequence[str],
        memory: int | None,
        clock: Callable[[], float],
        every: float,
        peak: Peak | None = None,
    ) -> None:
        """`peak` has the run weighed as often as one with a limit of memory."""
        self._process, self._devices, self._memory, self._clock = process, devices, memory, clock
        self._every, self._begun, self._peak = every, clock(), peak
        self._looked = self._begun
        self._metrics = UseMetrics(clock, every)
        self.gpu = GpuUse(devices)

    def due(self) -> bool:
        """Whether it is time for a sample."""
        rarely = self._memory is None and self._peak is None
        most = self._every if rarely else min(self._every, WEIGH)
        return is_time(self._clock(), self._begun, self._looked, most)

    def sample(self) -> Usage:
        self._looked = self._clock()
        limit = self._memory if self._peak is None else self._peak.memory
        usage = self._process.use(self._gpus, limit)
        if self._peak:
            self._peak.take(usage)
        self.gpu.take(usage)
        return usage

    def _gpus(self) -> list[GPU]:
        return [gpu for gpu in nvml.gpus() if gpu.uuid in self._devices] if self._devices else []

    def metrics(self, use: Usage) -> dict[str, float]:
        """None if it is not time yet."""
        return self._metrics.of(use) if self._metrics.due else {}

    def last(self, exit: Exit) -> dict[str, float]:
        """The use of a run that was over before the first sample; empty if there was one."""
        if not self._metrics.empty or exit.spawn_error:
            return {}
        cpu = exit.cpu_seconds / max(exit.seconds, SHORTEST)
        return {"system/memory": float(exit.max_rss), "system/cpu": cpu}
