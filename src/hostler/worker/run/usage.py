"""Processor time, memory and GPU use of a run's processes right now.

Memory is the sum of resident sizes, which counts shared pages once per process: fast, and an upper bound.
Only where that sum is over a limit are the pages shared out exactly, so that no run is killed for forked
readers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from hostler import proctable
from hostler.proctable import PROC, ProcessRow
from hostler.worker.run.nvml import GPU


@dataclass(frozen=True)
class Usage:
    """A sample. GPU values are None where the run has no GPU."""

    cpu_seconds: float = 0.0
    rss: int = 0
    processes: int = 0
    gpu_util: float | None = None  # percent, mean over its devices, whoever uses them
    gpu_memory: int | None = None
    gpu_own: bool = False  # that is its own memory, not all that is in use on its devices


def sample(pid: int, gpus: Sequence[GPU] = (), *, supervisor: int = 0, limit: int | None = None) -> Usage:
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


def over_memory(sample: Usage, limit: int | None) -> bool:
    """Whether the run is over its limit of memory."""
    return limit is not None and sample.rss > limit


def _rows(table: dict[int, ProcessRow], pid: int, supervisor: int) -> list[ProcessRow]:
    chosen = {row.pid for row in table.values() if pid in (row.pid, row.group, row.session)}
    chosen |= proctable.below(table, pid)
    if supervisor:
        chosen |= proctable.below(table, supervisor)
    return [table[one] for one in sorted(chosen) if one in table and table[one].alive]


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
