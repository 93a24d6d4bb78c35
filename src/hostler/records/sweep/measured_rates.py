"""Rates at which fleets train a sweep, measured by a scout and kept in the store.

A rate is steps in a second of one run after its warm-up. Each fleet has one record, which the next scout
replaces. What a function makes of points is pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from math import log
from statistics import mean
from typing import Any

from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import NUMBER, TEXT, WHOLE, checked, decode, encode, taken_apart
from hostler.spec.names import slug
from hostler.store import NotFound, Store

STEADY = 0.05  # two halves of a measurement that differ by less are steady
DRIFT = 1.5  # times another rate: it has changed
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
    drift: float = 1.0  # rate in the second half of that time, times the rate in the first

    @property
    def changed(self) -> bool:
        """Whether the rate became another while it was measured."""
        return not 1 / DRIFT < self.drift < DRIFT


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
        if (
            seen and time <= seen[-1][0]
        ):  # read at once from what was printed: only the last is of that moment
            seen[-1] = (seen[-1][0], max(step, seen[-1][1]))
        elif not seen or step > seen[-1][1]:
            seen.append((time, step))
    if len(seen) < FEWEST:
        return None
    cut = next((n for n in range(len(seen) // 2) if _is_steady(seen[n:])), len(seen) // 2)
    (begins, low), (ends, high) = seen[cut], seen[-1]
    rate = (high - low) / (ends - begins)
    drift = _drift(seen[cut:])
    return Speed(rate, max(0.0, begins - began - (low - first) / rate), ends - begins, drift)


def _is_steady(seen: Sequence[tuple[float, int]]) -> bool:
    drift = _drift(seen) if len(seen) >= FEWEST else 0.0
    return 1 - STEADY <= drift <= 1 / (1 - STEADY)


def _drift(seen: Sequence[tuple[float, int]]) -> float:
    """The rate of the second half of the points, times that of the first; 1 where they are too few."""
    half = len(seen) // 2
    return _slope(seen[half:]) / _slope(seen[: half + 1]) if len(seen) > 2 else 1.0


def _slope(seen: Sequence[tuple[float, int]]) -> float:
    return (seen[-1][1] - seen[0][1]) / (seen[-1][0] - seen[0][0])


def together(found: Sequence[Speed]) -> Speed | None:
    """Mean speed of attempts on machines of one kind. Pure."""
    if not found:
        return None
    rates, warm = [one.rate for one in found], [one.warm for one in found]
    drift = max((one.drift for one in found), key=lambda times: abs(log(times)))
    return Speed(mean(rates), mean(warm), sum(s.span for s in found), drift)


def planned_steps(params: Mapping[str, Any]) -> int | None:
    """Steps of a run, where its parameters tell. Pure."""
    total = next((params[key] for key in STEP_KEYS if key in params), None)
    return None if isinstance(total, bool) or not isinstance(total, (int, float)) else int(total)


def write(store: Store, sweep: str, one: MeasuredRate) -> None:
    store.put(layout.measured_rate(sweep, slug(one.fleet)), encode(asdict(one)))


def read(store: Store, sweep: str, fleet: str) -> MeasuredRate | None:
    """The rate of a fleet; None if it was never scouted."""
    rate = _at(store, layout.measured_rate(sweep, slug(fleet)))
    return replace(rate, fleet=fleet) if rate else None


def every(store: Store, sweep: str) -> list[MeasuredRate]:
    """All rates of a sweep; each names its fleet as the store does."""
    keys = [entry.key for entry in store.list(layout.measured_rates(sweep), deep=False)]
    rates = {key.rsplit("/", 1)[1].removesuffix(".json"): _at(store, key) for key in keys}
    return [replace(rate, fleet=name) for name, rate in rates.items() if rate]


def _at(store: Store, key: str) -> MeasuredRate | None:
    try:
        record = checked(decode(store.get(key).data, key), _FIELDS, key, ["rate"])
    except NotFound:
        return None
    with taken_apart(key):
        known = {name: record[name] for name in MeasuredRate.__dataclass_fields__ if name in record}
        rate = MeasuredRate(**{**known, "fleet": str(known.get("fleet", ""))})
        return rate if rate.rate > 0 else None


_FIELDS = {
    **dict.fromkeys(("rate", "warm", "span", "price", "at"), NUMBER),
    **dict.fromkeys(("steps", "seats"), WHOLE),
    **dict.fromkeys(("fleet", "machine", "code"), TEXT),
}
