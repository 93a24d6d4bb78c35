"""Emulated time: it passes `scale` times as fast as the wall's.

A moment that a client names by the wall clock (a termination time) comes when what is left of it has passed
in emulated time, counted from when it is first heard. Stamps in answers are the wall's.
"""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta, timezone

from hostler.emulators.gce.api.refusal import invalid

_PACIFIC = timezone(timedelta(hours=-8))
_RFC3339 = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)")


class Clock:
    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale
        self._began = time.monotonic()

    def now(self) -> float:
        """Emulated seconds since the beginning."""
        return (time.monotonic() - self._began) * self.scale

    def real(self, seconds: float) -> float:
        """Real duration of emulated seconds."""
        return seconds / self.scale

    def moment(self, text: str) -> float:
        return self.now() + wall(text) - time.time()


def stamp(at: float | None = None) -> str:
    """The wall clock, now if no moment is given, as Compute Engine writes it."""
    when = datetime.fromtimestamp(time.time() if at is None else at, _PACIFIC)
    return when.isoformat(timespec="milliseconds")


def wall(text: str) -> float:
    """Seconds since the epoch of an RFC 3339 moment."""
    match = _RFC3339.fullmatch(text)
    if not match:
        raise invalid("resource.scheduling.terminationTime", text, "It is not a moment in RFC 3339 form.")
    zone = "+00:00" if match[4] in "Zz" else match[4]
    whole = datetime.fromisoformat(f"{match[1]}T{match[2]}{zone}").timestamp()
    return whole + float(match[3] or 0)
