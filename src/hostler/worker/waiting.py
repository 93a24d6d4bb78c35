"""A worker that begins while its store does not answer waits for it, and not for ever."""

from __future__ import annotations

import time
from collections.abc import Callable

from hostler.errors import MachineError, StoreUnreachable
from hostler.records import layout
from hostler.settings import Timing
from hostler.spec.units import show_duration
from hostler.store import Store


def await_store(
    store: Store,
    timing: Timing,
    say: Callable[[str], None],
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> None:
    """Until it answers at all. MachineError if it does not in time: others may reach it."""
    begun, wait = clock(), timing.wait_min
    while True:
        try:
            any(store.list(layout.PROJECT))
            return
        except StoreUnreachable as error:
            silent = clock() - begun
            if silent >= timing.storeless:
                said = f"without its store for {show_duration(round(silent))}, this worker leaves"
                raise MachineError(f"{said}: {error.message}", error.hint) from None
            say(f"{error}; trying again")
        pause(wait)
        wait = min(wait * 2, timing.wait_max)
