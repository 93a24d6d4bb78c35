"""A VM for hand work watches itself: nobody logged in and nothing to compute for long enough, and it goes.

A program of its own (`python -m hostler.worker.gce_idle SECONDS`); whoever started it removes the VM then. It
notes that it is there, so that what it costs is known; but a store that is silent keeps no VM.
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
from hostler.errors import HostlerError
from hostler.records import generations, settling
from hostler.settings import Timing
from hostler.store import Store, open_store
from hostler.worker import gce_vm
from hostler.worker.gce_vm import Vm
from hostler.worker.parent import new_session
from hostler.worker.presence import Presence

LOOK = 15.0
SSH = 22
_CONNECTED = "01"  # in the kernel's table


def main() -> int:
    seconds = float(sys.argv[1])
    gce_vm.report("working")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # it is switched off
    vm, timing = gce_vm.this_vm(), settings.timing()
    with noted(vm, timing):
        wait_until_idle(seconds, is_busy)
    print(f"hostler: idle for {seconds:g} s", flush=True)
    return 0


@contextmanager
def noted(vm: Vm, timing: Timing) -> Iterator[None]:
    """While this VM is there its launch says so, and is closed at its end."""
    name = str(vm.settings["launch"])
    try:
        store = open_store(str(vm.settings["store"]), retry=timing.retry)
        presence = Presence(store, name, new_session(), timing, time.monotonic, _say, vm.born())
        presence.begin(None)
    except HostlerError as error:
        _say(str(error))
        yield
        return
    try:
        yield
    finally:
        presence.end(final=True)
        _close(store, name, timing)


def _close(store: Store, name: str, timing: Timing) -> None:
    fleet, _, number = name.rpartition("/")
    try:
        if one := generations.read(store, fleet, int(number)):
            settling.close(store, one, timing)
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
