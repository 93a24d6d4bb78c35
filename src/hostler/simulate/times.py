"""Durations that vary, of runs, boots and gaps, and their parser. Pure."""

from __future__ import annotations

import random

from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec.units import duration, show_duration


@dataclass(frozen=True)
class VaryingSeconds:
    """Seconds that vary: one of some that were seen, or anything between two, or always the same."""

    seen: tuple[float, ...] = ()
    low: float = 0.0
    high: float = 0.0

    def draw(self, chance: random.Random) -> float:
        if self.seen:
            return self.seen[int(chance.random() * len(self.seen))]
        return self.low if self.low == self.high else chance.uniform(self.low, self.high)

    def times(self, factor: float) -> VaryingSeconds:
        return VaryingSeconds(
            tuple(number * factor for number in self.seen), self.low * factor, self.high * factor
        )

    @property
    def mean(self) -> float:
        return sum(self.seen) / len(self.seen) if self.seen else (self.low + self.high) / 2

    @property
    def longest(self) -> float:
        return max(self.seen) if self.seen else self.high

    def __str__(self) -> str:
        low, high = (min(self.seen), max(self.seen)) if self.seen else (self.low, self.high)
        return (
            show_duration(low)
            if show_duration(low) == show_duration(high)
            else (f"{show_duration(low)} to {show_duration(high)}")
        )


def times(text: str, option: str) -> VaryingSeconds:
    """Parse `40m`, or `30m-1h` for anything between them."""
    low, between, high = text.partition("-")
    try:
        seconds = VaryingSeconds((), duration(low.strip()), duration((high if between else low).strip()))
    except ValueError:
        raise UsageError(
            f"{option} {text}: not a time", hint=f"for example {option} 40m, or {option} 30m-1h"
        ) from None
    if seconds.high < seconds.low:
        raise UsageError(
            f"{option} {text}: the second time is shorter than the first", hint=f"give {option} {high}-{low}"
        )
    return seconds


def intervals(text: str) -> tuple[float, ...]:
    """Parse `5m,15m,1h`."""
    found = []
    for part in text.split(","):
        seconds = times(part.strip(), "--checkpoint")
        if seconds.low <= 0 or seconds.low != seconds.high:
            raise UsageError(
                f"--checkpoint {part.strip()!r} is not an interval", hint="for example --checkpoint 5m,15m,1h"
            )
        found.append(seconds.low)
    return tuple(dict.fromkeys(found))
