"""Keys of fleets on Slurm."""

from __future__ import annotations

from typing import Literal

from hostler.spec.files.parse import Count, FleetKeys, Lines, Seconds, Text


class SlurmKeys(FleetKeys):
    backend: Literal["slurm"]
    login: Text | None = None
    partition: Text | None = None
    account: Text | None = None
    qos: Text | None = None
    constraint: Text | None = None
    time: Seconds | None = None
    gres: Text | None = None
    header: Lines | None = None
    script: Text | None = None
    shape: Literal["cpu", "small-gpu", "large-gpu"] | None = None
    requeue: bool | None = None
    chain: Count | None = None


KEYS = SlurmKeys
