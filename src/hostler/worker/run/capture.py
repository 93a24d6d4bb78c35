"""What attempts on this machine run on, as one record: what a later reader needs to do them again."""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from typing import Any

import hostler
from hostler.worker.claim import memory
from hostler.worker.prepare import packages
from hostler.worker.run.nvml import GPU


def capture(exe: str, gpus: Sequence[GPU] = (), *, driver: str = "") -> dict[str, Any]:
    """Packages, Python, platform, driver, GPUs and host; JSON-able."""
    found = packages.inspect(exe)
    return {
        "hostler": hostler.__version__,
        "python": {
            "exe": exe,
            "version": found.python,
            "implementation": found.implementation,
            "prefix": found.prefix,
        },
        "packages": dict(sorted(found.packages.items())),
        "platform": found.platform,
        "host": platform.node(),
        "cpus": os.cpu_count() or 0,
        "memory": memory.physical(),
        "driver": driver,
        "gpus": [{"uuid": gpu.uuid, "name": gpu.name, "memory": gpu.memory_total} for gpu in gpus],
    }
