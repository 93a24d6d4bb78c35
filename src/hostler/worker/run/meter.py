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
SHORTEST = 0.1  # seconds over which a use of CPU means something


class Meter:
    def __init__(
        self,
        process: Process,
        devices: Sequence[str],
        memory: int | None,
        clock: Callable[[], float],
        every: float,
    ) -> None:
        self._process, self._devices, self._memory, self._clock = process, devices, memory, clock
        self._every, self._begun = every, clock()
        self._looked: float | None = None
        self._logged: float | None = None
        self._last = (clock(), 0.0)

    def due(self) -> bool:
        """Whether it is time for a sample."""
        most = self._every if self._memory is None else min(self._every, WEIGH)
        return self._passed(self._looked, most)

    def sample(self) -> Usage:
        self._looked = self._clock()
        gpus = [gpu for gpu in nvml.gpus() if gpu.uuid in self._devices] if self._devices else []
        return sample(self._process.pid, gpus, supervisor=self._process.supervisor, limit=self._memory)

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
