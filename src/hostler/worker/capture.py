"""The surroundings of one attempt, written down: what a later reader needs to do it again.

Secret values never get in: the command line is masked.
"""

from __future__ import annotations

import os
import platform
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

import hostler
from hostler.worker import packages, preflight
from hostler.worker.mask import mask
from hostler.worker.nvml import GPU


def capture(
    exe: str, argv: Sequence[str], gpus: Sequence[GPU] = (), *, driver: str = "", secrets: Iterable[str] = ()
) -> dict[str, Any]:
    """Packages, Python, platform, driver, GPUs, host and command line, as one JSON-able record."""
    found = packages.inspect(exe)
    values = list(secrets)
    command = [mask(argument, values) for argument in argv]
    return {
        "hostler": hostler.__version__,
        "command": command,
        "command_line": shlex.join(command),
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
        "memory": preflight.total_memory(),
        "driver": driver,
        "gpus": [{"uuid": gpu.uuid, "name": gpu.name, "memory": gpu.memory_total} for gpu in gpus],
    }
