"""Checks this machine's clock: whether a time service sets it, and whether it agrees with the store's."""

from __future__ import annotations

import ctypes
import sys
import time

from hostler.backends.doctor import NONE, OK, WARN, Check
from hostler.records.run import heartbeats
from hostler.store import Store

SKEW = 30.0  # seconds between the store's clock and ours
UNSYNCHRONISED = 0x40  # of the kernel's status


class _Timex(ctypes.Structure):
    """The beginning of the kernel's `timex`, with room for the rest."""

    _fields_ = [
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_char * 512),
    ]


def of_store(found: Store) -> Check:
    skew = heartbeats.store_time(found) - time.time()
    detail = f"the store's is {abs(skew):.1f} s {'ahead' if skew > 0 else 'behind'}"
    if abs(skew) > SKEW:
        todo = "set this machine's clock (NTP): times shown are off by that much"
        return Check(WARN, "clock", detail, todo)
    return Check(OK, "clock", detail)


def of_machine() -> Check:
    return told(*kernel())


def kernel() -> tuple[int, int]:
    """(status, largest error in microseconds) as Linux has them; (-1, 0) where nobody tells."""
    if sys.platform != "linux":
        return -1, 0
    asked = _Timex()
    try:
        answer = ctypes.CDLL(None).adjtimex(ctypes.byref(asked))
    except (OSError, AttributeError):
        return -1, 0
    return (int(asked.status), int(asked.maxerror)) if answer >= 0 else (-1, 0)


def told(status: int, error: int) -> Check:
    """The finding for the kernel's answer. Pure."""
    if status < 0:
        return Check(NONE, "clock", "cannot tell whether a time service sets it")
    if status & UNSYNCHRONISED:
        todo = "run timedatectl set-ntp true, or use chrony; harmless while all machines agree within 30 s"
        return Check(NONE, "clock", "no time service reports that it sets it", todo)
    return Check(OK, "clock", f"set by a time service, right within {max(error, 1000) / 1e6:.3f} s")
