"""Faults of requests: for the next ones of a method, or for all until further notice.

The faults themselves are those of the storage emulator: LOST takes effect and is not answered, DROPPED does
neither, `busy(429)` is refused, `slow(2)` is answered late.
"""

from __future__ import annotations

import fnmatch
import threading
from dataclasses import dataclass

from hostler.emulators.gcs.faults import Fault


@dataclass
class _Order:
    fault: Fault
    method: str
    left: int | None

    def fits(self, method: str) -> bool:
        return self.left != 0 and fnmatch.fnmatchcase(method.lower(), self.method.lower())


class Faults:
    """Methods are named as in Google's document, `*` for anything: `*Managers.insert`. Thread-safe."""

    def __init__(self) -> None:
        self.met = 0
        self._lock = threading.Lock()
        self._orders: list[_Order] = []

    def next(self, fault: Fault, method: str = "*", *, times: int = 1) -> None:
        with self._lock:
            self._orders.append(_Order(fault, method, times))

    def always(self, fault: Fault, method: str = "*") -> None:
        with self._lock:
            self._orders.append(_Order(fault, method, None))

    def clear(self) -> None:
        with self._lock:
            self._orders.clear()

    def choose(self, method: str) -> Fault | None:
        """The fault that a request meets; asked once for each."""
        with self._lock:
            for order in self._orders:
                if order.fits(method):
                    order.left = None if order.left is None else order.left - 1
                    self.met += 1
                    return order.fault
            return None
