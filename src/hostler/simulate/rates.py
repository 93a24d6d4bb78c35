"""Parses how often machines are taken away into a rate. Pure.

A rate is the share of machines that is taken away within a span: 5%/h, 0.05/h, 20%/d.
So it is below 100 %; what lives shorter is said over a shorter span (50%/10m).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec.units import duration, show_duration

_RATE = re.compile(r"\s*([-+]?[0-9.]+(?:e[-+]?\d+)?)\s*(%?)\s*(?:/\s*([0-9.]*\s*[a-z]+))?\s*", re.IGNORECASE)
_LIKE = "give 5%/h, 0.05/h or 20%/d: the share of machines taken away in an hour or a day"


@dataclass(frozen=True)
class PreemptionRate:
    """`hazard`: preemptions of one machine in a second."""

    hazard: float = 0.0
    said: str = "none"


def rate(text: str) -> PreemptionRate:
    """Parse `5%/h`, or `5%` (per hour); UsageError if it is not a rate below 100 %."""
    if text.strip() in ("0", "0%", "none"):
        return PreemptionRate()
    match = _RATE.fullmatch(text)
    try:
        share = float(match[1]) / (100 if match[2] else 1) if match else math.nan
        span = _span(match[3] or "h") if match else 0.0
    except ValueError:
        share, span = math.nan, 0.0
    if math.isnan(share) or not span:
        raise UsageError(f"{text!r} is not a rate", hint=_LIKE)
    if share < 0:
        raise UsageError(f"a rate of {text} is below zero", hint=_LIKE)
    if share >= 1:
        raise UsageError(
            f"a rate of {text} takes every machine away within {show_duration(span)}: no run would ever end",
            hint="give a rate below 100 %, over a shorter time if need be: 50%/10m",
        )
    return PreemptionRate(-math.log1p(-share) / span, text.strip())


def _span(text: str) -> float:
    """Seconds of `h`, `d`, `10m`."""
    return duration(text if text.strip()[:1].isdigit() else f"1{text}")


def named_rates(texts: Sequence[str], fleets: Sequence[str]) -> dict[str, PreemptionRate]:
    """fleet → rate, of `5%/h` for all of them and `burst=5%/h` for one."""
    rates: dict[str, PreemptionRate] = {}
    for text in texts:
        fleet, is_one, what = text.rpartition("=")
        if is_one and fleet not in fleets:
            raise UsageError(
                f"--preempt {text}: {fleet!r} is not a simulated fleet",
                hint=f"choose from: {', '.join(dict.fromkeys(fleets))}",
            )
        rates |= {name: rate(what) for name in ([fleet] if is_one else fleets)}
    return rates
