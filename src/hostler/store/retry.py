"""The one retry loop: how often and how long to wait is pure, clock and sleep are given.

The first attempt comes at once; no attempt begins after the bound.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator

from hostler.frozen import dataclass

FIRST_WAIT = 0.1
LONGEST_WAIT = 5.0


@dataclass(frozen=True)
class RetryTime:
    """How long a request is tried again, and by whose clock."""

    bound: float = 30.0
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep
    spread: Callable[[], float] = random.random


def wait_before(attempt: int, spread: float) -> float:
    """Seconds before attempt 1, 2, …: doubling, capped, and spread over its upper half."""
    full = min(FIRST_WAIT * 2.0 ** min(attempt - 1, 20), LONGEST_WAIT)
    return full * (0.5 + 0.5 * spread)


def attempts(patience: RetryTime) -> Iterator[int]:
    """0 at once, then 1, 2, … with waits between, until the bound; leave the loop to end it."""
    begin = patience.clock()
    number = 0
    while True:
        yield number
        number += 1
        wait = wait_before(number, patience.spread())
        if patience.clock() - begin + wait > patience.bound:
            return
        patience.sleep(wait)
