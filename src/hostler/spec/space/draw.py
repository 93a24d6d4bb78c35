"""Draws that depend on seed, index and name alone: the same on every machine, in any order.

Nothing here uses `random` or the platform's exponentials; two Pythons give the same bits.
"""

from __future__ import annotations

import hashlib
import math
from decimal import ROUND_HALF_EVEN, Context, Decimal
from statistics import NormalDist

from hostler.spec.space.ladder import Number, decimal, inside

_BITS = 256
_EXACT = Context(prec=30)


def bits(seed: int, index: int, name: str) -> int:
    """256 random bits."""
    what = f"{seed}/{index}/{name}".encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(what, digest_size=_BITS // 8).digest(), "big")


def below(drawn: int, count: int) -> int:
    """A whole number from 0 to count - 1."""
    return drawn * count >> _BITS


def unit(drawn: int) -> float:
    """A number from 0 up to, not with, 1."""
    return (drawn >> (_BITS - 53)) / (1 << 53)


def whole(drawn: int, low: int, high: int, *, log: bool, step: int = 1) -> int:
    """A whole number from low to high, both among them."""
    if not log:
        return low + step * below(drawn, (high - low) // step + 1)
    found = int(_log_uniform(drawn, decimal(low), Decimal(high + 1)))
    return min(max(found, low), high)


def real(drawn: int, low: float, high: float, *, log: bool, step: Number | None = None) -> float:
    """A number from low to high."""
    if step is not None:
        at = below(drawn, inside(low, high, step))
        return float(_EXACT.add(decimal(low), _EXACT.multiply(decimal(step), Decimal(at))))
    if log:
        found = float(_log_uniform(drawn, decimal(low), decimal(high)))
    else:
        part = unit(drawn)
        found = low * (1.0 - part) + high * part
    return min(max(found, low), high)


def normal(drawn: int, mean: float, deviation: float) -> float:
    """A number of the normal distribution, to twelve digits."""
    part = max(unit(drawn), 2.0**-54)
    return float(f"{mean + deviation * NormalDist().inv_cdf(part):.12g}")


def exponential(value: float) -> float:
    return float(_EXACT.exp(decimal(value)))


def rounded(value: float, quantum: Number) -> Number:
    """The nearest multiple; whole if the quantum is."""
    times = (decimal(value) / decimal(quantum)).to_integral_value(ROUND_HALF_EVEN)
    return int(times) * quantum if isinstance(quantum, int) else float(times * decimal(quantum))


def shuffled(index: int, count: int, seed: int) -> int:
    """Where index goes in a random order of 0 … count - 1; different for every index."""
    half = max(1, math.ceil((count - 1).bit_length() / 2))
    while True:
        index = _mixed(index, half, seed)
        if index < count:
            return index


def _mixed(index: int, half: int, seed: int) -> int:
    """Four rounds of a Feistel network over 2·half bits: one to one."""
    mask = (1 << half) - 1
    remaining, right = index >> half, index & mask
    for turn in range(4):
        remaining, right = right, remaining ^ (bits(seed, right, f"shuffle {turn}") & mask)
    return remaining << half | right


def _log_uniform(drawn: int, low: Decimal, high: Decimal) -> Decimal:
    first, last = _EXACT.ln(low), _EXACT.ln(high)
    part = _EXACT.multiply(_EXACT.subtract(last, first), decimal(unit(drawn)))
    return _EXACT.exp(_EXACT.add(first, part))
