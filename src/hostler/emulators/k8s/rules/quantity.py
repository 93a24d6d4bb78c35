"""Amounts as manifests write them: 500m, 1.5, 2Gi."""

from __future__ import annotations

import re
from decimal import Decimal

FORM = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(m|k|[KMGTPE]i?|n|u|[eE][+-]?\d+)?")
_POWERS = {"n": "1e-9", "u": "1e-6", "m": "1e-3", "": "1", "k": "1e3", "M": "1e6", "G": "1e9", "T": "1e12"}
_POWERS |= {"P": "1e15", "E": "1e18"}
_POWERS |= {f"{letter}i": str(1024**power) for power, letter in enumerate("KMGTPE", 1)}


def amount(text: object) -> Decimal:
    """Raises ValueError for what is none."""
    match = FORM.fullmatch(str(text))
    if not match:
        raise ValueError(f"{text} is not a quantity")
    unit = match[2] or ""
    if unit in _POWERS:
        return Decimal(match[1]) * Decimal(_POWERS[unit])
    return Decimal(match[1] + unit)
