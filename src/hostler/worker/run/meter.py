"""CPU, memory and GPU use of one run as metrics, from one sample to the next.

Samples come soon and then ever more rarely, so that a run of a second has some and a run of a week not too
many; a shorter one is measured by its end. Where memory is limited it is weighed every second.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hostler.worker.process.process import Process
from hostler.worker.run import nvml
from hostler.worker.run.exit import Exit
from hostler.worker.run.usage import Usage, sample

WEIGH = 1.0  # seconds between two looks at the memory of a run that has a limit
GROWN = 1.02  # times the peak before: less is not growth
SETTLED = 60.0  # seconds without growth after which a peak is believed, or half of the run's life if longer
SHORTEST = 0.1  # seconds over which a use of CPU means something


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
        self._looked: float | None = None
        self._logged: float | None = None
        self._last = (clock(), 0.0)

    def due(self) -> bool:
        """Whether it is time for a sample."""
        rarely = self._memory is None and self._peak is None
        most = self._every if rarely else min(self._every, WEIGH)
        return self._passed(self._looked, most)

    def sample(self) -> Usage:
        self._looked = self._clock()
        gpus = [gpu for gpu in nvml.gpus() if gpu.uuid in self._devices] if self._devices else []
        limit = self._memory if self._peak is None else self._peak.memory
        found = sample(self._process.pid, gpus, supervisor=self._process.supervisor, limit=limit)
        if self._peak:
            self._peak.take(found)
        return found

    def metrics(self, use: Usage) -> dict[str, float]:
        """Named system/…, so that a reader can tell them from the run's own; none if it is not time yet."""
        if not self._passed(self._logged, self._every):
            return {}
        now, (then, before) = self._clock(), self._last
        self._logged, self._last = now, (now, use.cpu_seconds)
        found = {"system/memory": float(use.rss), "system/processes": float(use.processes)}
        found["system/cpu"] = max(0.0, use.cpu_seconds - before) / max(now - then, SHORTEST)
        if use.gpu_util is not None:
            found["system/gpu"] = use.gpu_util
        if use.gpu_memory is not None:
            found["system/gpu_memory"] = float(use.gpu_memory)
        return found

    def last(self, exit: Exit) -> dict[str, float]:
        """The use of a run that was over before the first sample; empty if there was one."""
        if self._logged is not None or exit.spawn_error:
            return {}
        cpu = exit.cpu_seconds / max(exit.seconds, SHORTEST)
        return {"system/memory": float(exit.max_rss), "system/cpu": cpu}

    def _passed(self, since: float | None, most: float) -> bool:
        now = self._clock()
        since = self._begun if since is None else since
        return now - since >= min(most, since - self._begun + SHORTEST)
