"""A machine for hand work watches itself: once nobody has used it for long enough, this program ends.

A program of its own (`python -m hostler.worker.hand_machine HOST SECONDS STORE LAUNCH`); whoever started it
removes the machine then. It notes that it is there, so that its cost is known; without an answer of the store
the machine goes all the same.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from hostler import settings
from hostler.backends import registry
from hostler.errors import HostlerError
from hostler.records.launch import launches, settlement
from hostler.records.packs.packed_store import open_store
from hostler.settings import Timing
from hostler.store import Store
from hostler.worker.launch_membership import Membership
from hostler.worker.session_name import new_session

LOOK = 15.0
SSH = 22
_CONNECTED = "01"  # in the kernel's table


def main() -> int:
    name, idle, url, launch = sys.argv[1:]
    host, seconds = registry.host(name), float(idle)
    host.report("working")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # it is switched off
    with noted(url, launch, host.born(), settings.timing()):
        wait_until_idle(seconds, is_busy)
    print(f"hostler: idle for {seconds:g} s", flush=True)
    return 0


@contextmanager
def noted(url: str, name: str, machine: tuple[str, float], timing: Timing) -> Iterator[None]:
    """Note this machine in its launch while it is there, and close the launch at its end."""
    try:
        store = open_store(url, retry=timing.retry)
        membership = Membership(store, name, new_session(), timing, time.monotonic, _say, machine)
        membership.begin(None)
    except HostlerError as error:
        _say(str(error))
        yield
        return
    try:
        yield
    finally:
        membership.end(final=True)
        _close(store, name, timing)


def _close(store: Store, name: str, timing: Timing) -> None:
    fleet, _, number = name.rpartition("/")
    try:
        if generation := launches.read(store, fleet, int(number)):
            settlement.close(store, generation, timing)
    except HostlerError as error:  # the next one who looks settles it
        _say(str(error))


def _say(line: str) -> None:
    print(f"hostler: {line}", flush=True)


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
