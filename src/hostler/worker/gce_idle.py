"""A VM for hand work watches itself: nobody logged in and nothing to compute for long enough, and it goes.

A program of its own (`python -m hostler.worker.gce_idle SECONDS`); whoever started it removes the VM then.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from hostler import settings
from hostler.worker import gce_vm

LOOK = 15.0
SSH = 22
_CONNECTED = "01"  # in the kernel's table


def main() -> int:
    seconds = float(sys.argv[1])
    gce_vm.report("working")
    wait_until_idle(seconds, is_busy)
    print(f"hostler: idle for {seconds:g} s", flush=True)
    return 0


def wait_until_idle(
    seconds: float,
    busy: Callable[[], bool],
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    since = clock()
    while clock() - since < seconds:
        pause(min(LOOK, seconds / 4))
        if busy():
            since = clock()


def is_busy() -> bool:
    return os.getloadavg()[0] > settings.sizes().busy_load or any(_connections())


def connected(table: str, port: int) -> bool:
    """Whether the kernel's table of connections has one to this port. Pure."""
    rows = (line.split() for line in table.splitlines()[1:])
    return any(
        len(row) > 3 and row[3] == _CONNECTED and int(row[1].rpartition(":")[2], 16) == port for row in rows
    )


def _connections() -> Iterator[bool]:
    for name in ("tcp", "tcp6"):
        path = Path("/proc/net") / name
        yield path.is_file() and connected(path.read_text(), SSH)


if __name__ == "__main__":
    sys.exit(main())
