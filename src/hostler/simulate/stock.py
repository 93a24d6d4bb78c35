"""Times at which zones run out of machines: known windows, and others by chance. Pure."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field

from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.simulate.rates import PreemptionRate, rate
from hostler.simulate.times import times

_WINDOW = re.compile(r"([a-z]+-[a-z]+\d+-[a-z]|\*)@([^-]+)-(.+)")

_LIKE = "give 10%/d:2h (one zone of ten runs out in a day, for two hours) or us-central1-a@1h-3h"


@dataclass(frozen=True)
class Outage:
    """A zone has none left from `begins` to `ends`, in seconds since the launch; `*` is every zone."""

    zone: str
    begins: float
    ends: float = math.inf


@dataclass(frozen=True)
class Stockouts:
    """Windows that are known, and a rate at which zones run out, for a time that is `lasts` on average."""

    windows: tuple[Outage, ...] = ()
    rate: PreemptionRate = field(default_factory=PreemptionRate)
    lasts: float = 0.0

    def __bool__(self) -> bool:
        return bool(self.windows or self.rate.hazard)


def stockouts(texts: Sequence[str]) -> Stockouts:
    """Parse `ZONE@1h-3h`, `*@0-30m` (every zone), or `10%/d:2h`: a zone's risk and its duration."""
    windows, chance, lasts = list[Outage](), PreemptionRate(), 0.0
    for text in texts:
        window = _WINDOW.fullmatch(text.strip())
        if window:
            begins, ends = times(window[2], "--stockout").low, times(window[3], "--stockout").low
            if ends <= begins:
                raise UsageError(
                    f"--stockout {text}: it ends before it begins", hint="give --stockout ZONE@1h-3h"
                )
            windows.append(Outage(window[1], begins, ends))
            continue
        often, _, long = text.partition(":")
        chance, lasts = _chance(often, text), times(long, "--stockout").mean if long else 0.0
        if not lasts:
            raise UsageError(f"--stockout {text}: the duration is missing", hint=_LIKE)
    return Stockouts(tuple(windows), chance, lasts)


def _chance(often: str, text: str) -> PreemptionRate:
    try:
        return rate(often)
    except UsageError:  # whose words are about machines that are taken away
        raise UsageError(
            f"--stockout {text}: not a zone with a time, nor a rate below 100 %", hint=_LIKE
        ) from None


def windows_of(
    found: Stockouts, zones: Sequence[str], chance: random.Random, until: float
) -> dict[str, list[Outage]]:
    """zone → when it has none, in order: the windows that are known, and others by chance."""
    made: dict[str, list[Outage]] = {}
    for zone in zones:
        own = [one for one in found.windows if one.zone in (zone, "*")]
        own += _by_chance(found, zone, chance, until)
        if own:
            made[zone] = sorted(own, key=lambda one: one.begins)
    return made


def _by_chance(found: Stockouts, zone: str, chance: random.Random, until: float) -> Iterator[Outage]:
    """It may be out when all begins: as likely as it is at any moment."""
    hazard = found.rate.hazard
    if not hazard:
        return
    share = hazard * found.lasts / (1 + hazard * found.lasts)
    at = 0.0 if chance.random() < share else chance.expovariate(hazard)
    while at < until:
        ends = at + chance.expovariate(1 / found.lasts)
        yield Outage(zone, at, ends)
        at = ends + chance.expovariate(hazard)


def is_out(windows: Mapping[str, Sequence[Outage]], zone: str, now: float) -> bool:
    return any(outage.begins <= now < outage.ends for outage in windows.get(zone, ()))


def back_at(windows: Mapping[str, Sequence[Outage]], zones: Sequence[str], now: float) -> float:
    """The time at which one of these zones has machines again."""
    return min((_back(windows.get(zone, ()), now) for zone in zones), default=now)


def _back(windows: Sequence[Outage], now: float) -> float:
    for window in windows:
        if window.begins <= now < window.ends:
            now = window.ends
    return now
