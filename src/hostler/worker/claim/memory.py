"""Memory limit of this worker's runs: the machine's, or less in a container or a batch job.

The kernel kills a process that exceeds its control group, and in a container all others with it. Groups
lie in each other, each with its own limit; what a container cannot see of them binds it no closer.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

GROUPS, OWN = Path("/sys/fs/cgroup"), Path("/proc/self/cgroup")


def allowed(groups: Path = GROUPS, own: Path = OWN) -> int:
    """Bytes; 0 if nothing tells."""
    told = [physical(), *_limits(groups, own)]
    return min((limit for limit in told if limit > 0), default=0)


def physical() -> int:
    """Bytes of this machine; 0 if it does not tell."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return 0


def _limits(groups: Path, own: Path) -> Iterator[int]:
    """Limits of this process's group and of its parents, by either version of the kernel's interface."""
    for line in _text(own).splitlines():
        _, controllers, place = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        base = groups / "memory" if controllers else groups
        name = "memory.limit_in_bytes" if controllers else "memory.max"
        group = Path(place.lstrip("/"))
        for inner in (group, *group.parents):
            told = _text(base / inner / name).strip()
            if told.isdigit():  # else it is `max`
                yield int(told)


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
