"""Rates at which fleets train a sweep, measured by a scout and kept in the store.

A rate is steps in a second of one run after its warm-up. Each fleet has one record, which the next scout
replaces. What a function makes of points is pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from statistics import mean
from typing import Any

from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import NUMBER, TEXT, WHOLE, checked, decode, encode, taken_apart
from hostler.spec.names import slug
from hostler.store import NotFound, Store

STEADY = 0.05  # two halves of a measurement that differ by less are steady
FEWEST = 4  # points that a rate needs behind it
STEP_KEYS = (  # parameters that say how many steps a run has
    *("steps", "max_steps", "num_steps", "total_steps", "iterations"),
    *("epochs", "max_epochs", "num_epochs"),
)


@dataclass(frozen=True)
class Speed:
    """Speed of one attempt. `warm`: seconds that it took before its steps came at this rate."""

    rate: float
    warm: float = 0.0
    span: float = 0.0  # seconds that the rate was measured for


@dataclass(frozen=True)
class MeasuredRate:
    """Speed of a fleet's machines with a sweep."""

    fleet: str
    rate: float
    warm: float = 0.0
    span: float = 0.0
    steps: int | None = None  # of a whole run; None where nobody knows
    seats: int = 1  # runs that were on the machine at once
    price: float | None = None  # of one worker, an hour
    machine: str = ""
    code: str = ""  # mark of the code that was measured
    at: float = 0.0

    @property
    def seconds(self) -> float | None:
        """Seconds of a whole run that nobody disturbs."""
        return None if self.steps is None else self.warm + self.steps / self.rate

    @property
    def per_step(self) -> float | None:
        """Money for one step."""
        return None if self.price is None else self.price / 3600 / self.rate / self.seats

    @property
    def per_run(self) -> float | None:
        """Money for one run that nobody disturbs."""
        if self.price is None or self.seconds is None:
            return None
        return self.price / 3600 * self.seconds / self.seats


def speed(points: Sequence[tuple[float, int]], began: float, first: int = 0) -> Speed | None:
    """Speed by points of (time, step), oldest first. The attempt began at `began` with step `first`. The
    warm-up ends where the rest is steady, in the middle at the latest. None where too little was seen. Pure.
    """
    seen: list[tuple[float, int]] = []
    for time, step in points:
        if not seen or (step > seen[-1][1] and time > seen[-1][0]):
            seen.append((time, step))
    if len(seen) < FEWEST:
        return None
    cut = next((n for n in range(len(seen) // 2) if _is_steady(seen[n:])), len(seen) // 2)
    (begins, low), (ends, high) = seen[cut], seen[-1]
    rate = (high - low) / (ends - begins)
    return Speed(rate, max(0.0, begins - began - (low - first) / rate), ends - begins)


def _is_steady(seen: Sequence[tuple[float, int]]) -> bool:
    if len(seen) < FEWEST:
        return False
    half = len(seen) // 2
    early, late = _slope(seen[: half + 1]), _slope(seen[half:])
    return abs(early - late) <= STEADY * max(early, late)


def _slope(seen: Sequence[tuple[float, int]]) -> float:
    return (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])


def together(found: Sequence[Speed]) -> Speed | None:
    """Mean speed of attempts on machines of one kind. Pure."""
    if not found:
        return None
    rates, warm = [one.rate for one in found], [one.warm for one in found]
    return Speed(mean(rates), mean(warm), sum(s.span for s in found))


def planned_steps(params: Mapping[str, Any]) -> int | None:
    """Steps of a run, where its parameters tell. Pure."""
    total = next((params[key] for key in STEP_KEYS if key in params), None)
    return None if isinstance(total, bool) or not isinstance(total, (int, float)) else int(total)


def write(store: Store, sweep: str, one: MeasuredRate) -> None:
    store.put(layout.measured_rate(sweep, slug(one.fleet)), encode(asdict(one)))


def read(store: Store, sweep: str, fleet: str) -> MeasuredRate | None:
    """The rate of a fleet; None if it was never scouted."""
    key = layout.measured_rate(sweep, slug(fleet))
    try:
        record = checked(decode(store.get(key).data, key), _FIELDS, key, ["rate"])
    except NotFound:
        return None
    with taken_apart(key):
        known = {name: record[name] for name in MeasuredRate.__dataclass_fields__ if name in record}
        found = MeasuredRate(**{**known, "fleet": fleet})
        return found if found.rate > 0 else None


_FIELDS = {
    **dict.fromkeys(("rate", "warm", "span", "price", "at"), NUMBER),
    **dict.fromkeys(("steps", "seats"), WHOLE),
    **dict.fromkeys(("fleet", "machine", "code"), TEXT),
}
