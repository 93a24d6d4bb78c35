"""Processor time, memory and GPU use of a run's processes right now.

Memory is the sum of resident sizes, which counts shared pages once per process: fast, and an upper bound.
Only where that sum is over a limit are the pages shared out exactly, so that no run is killed for forked
readers.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence

from hostler import proctable
from hostler.attempt import nvml
from hostler.attempt.nvml import GPU
from hostler.frozen import dataclass
from hostler.proctable import PROC, ProcessRow

SHORTEST = 0.1  # seconds over which a use of CPU means something


@dataclass(frozen=True)
class Usage:
    """A sample. GPU values are None where the run has no GPU."""

    cpu_seconds: float = 0.0
    rss: int = 0
    processes: int = 0
    gpu_util: float | None = None  # percent, mean over its devices, whoever uses them
    gpu_memory: int | None = None
    gpu_own: bool = False  # that is its own memory, not all that is in use on its devices


def sample(
    pid: int,
    gpus: Sequence[GPU] = (),
    *,
    supervisor: int = 0,
    limit: int | None = None,
) -> Usage:
    """The run whose leader is `pid`, with the strays its supervisor has adopted."""
    rows = _rows(proctable.table(), pid, supervisor)
    rss = sum(row.rss for row in rows)
    if limit is not None and rss > limit:
        rss = sum(_own_part(row) for row in rows)
    return Usage(
        cpu_seconds=sum(row.cpu_seconds for row in rows),
        rss=rss,
        processes=len(rows),
        gpu_util=sum(gpu.utilization for gpu in gpus) / len(gpus) if gpus else None,
        gpu_memory=_gpu_memory(gpus, {row.pid for row in rows}) if gpus else None,
        gpu_own=any(pid in {row.pid for row in rows} for gpu in gpus for pid, _ in gpu.processes),
    )


class UseMetrics:
    """Samples as metrics, soon at first and then ever more rarely: a run of a second has some, one of a week
    not too many."""

    def __init__(self, clock: Callable[[], float], every: float, spent: float = 0.0) -> None:
        """`spent`: seconds of CPU before this moment, for a process that is not new."""
        self._clock, self._every, self._begun, self._spent = clock, every, clock(), spent
        self._last: tuple[float, float] | None = None  # when, and the seconds of CPU until then

    @property
    def due(self) -> bool:
        since = self._begun if self._last is None else self._last[0]
        return is_time(self._clock(), self._begun, since, self._every)

    @property
    def empty(self) -> bool:
        """Whether nothing was measured yet."""
        return self._last is None

    def of(self, use: Usage) -> dict[str, float]:
        """Named system/…, so that a reader can tell them from the run's own."""
        now, (then, before) = self._clock(), self._last or (self._begun, self._spent)
        self._last = (now, use.cpu_seconds)
        found = {"system/memory": float(use.rss), "system/processes": float(use.processes)}
        found["system/cpu"] = max(0.0, use.cpu_seconds - before) / max(now - then, SHORTEST)
        if use.gpu_util is not None:
            found["system/gpu"] = use.gpu_util
        if use.gpu_memory is not None:
            found["system/gpu_memory"] = float(use.gpu_memory)
        return found


def is_time(now: float, begun: float, since: float, most: float) -> bool:
    """Whether the next sample is due: the older a run is the longer it takes, but never over `most`."""
    return now - since >= min(most, since - begun + SHORTEST)


def own_use() -> Usage:
    """This process with those below it, on the GPUs that it sees."""
    return sample(os.getpid(), visible(nvml.gpus(), os.environ.get("CUDA_VISIBLE_DEVICES")))


def visible(gpus: Sequence[GPU], named: str | None) -> list[GPU]:
    """GPUs that a process may use, by the variable's numbers or UUIDs; without it, all."""
    if named is None:
        return list(gpus)
    words = [word.strip() for word in named.split(",") if word.strip()]
    return [gpu for gpu in gpus if any(w == str(gpu.index) or gpu.uuid.startswith(w) for w in words)]


def over_memory(sample: Usage, limit: int | None) -> bool:
    """Whether the run is over its limit of memory."""
    return limit is not None and sample.rss > limit


def _rows(table: Mapping[int, ProcessRow], pid: int, supervisor: int) -> list[ProcessRow]:
    chosen = {row.pid for row in table.values() if pid in (row.pid, row.group, row.session)}
    chosen |= proctable.below(table, pid)
    if supervisor:
        chosen |= proctable.below(table, supervisor)
    return [table[number] for number in sorted(chosen) if number in table and table[number].alive]


def _own_part(row: ProcessRow) -> int:
    """Resident size with shared pages divided among their sharers."""
    try:
        text = (PROC / str(row.pid) / "smaps_rollup").read_text()
    except OSError:
        return row.rss
    found = next((line for line in text.splitlines() if line.startswith("Pss:")), None)
    return int(found.split()[1]) * 1024 if found else row.rss


def _gpu_memory(gpus: Sequence[GPU], own: Collection[int]) -> int:
    """The run's own where the driver's process numbers are ours, else all that is in use on its devices."""
    seen = {pid for gpu in gpus for pid, _ in gpu.processes}
    if seen.isdisjoint(own):
        return sum(gpu.memory_used for gpu in gpus)
    return sum(used for gpu in gpus for pid, used in gpu.processes if pid in own)
