"""Keys of fleets on every batch scheduler that is not Slurm; each platform's `keys.py` adds its own."""

from __future__ import annotations

from hostler.spec.files.parse import Count, FleetKeys, Lines, Seconds, Text


class SchedulerKeys(FleetKeys):
    queue: Text | None = None
    project: Text | None = None
    time: Seconds | None = None
    header: Lines | None = None
    options: Lines | None = None
    requeue: bool | None = None
    chain: Count | None = None
