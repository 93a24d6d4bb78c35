"""Values of any kind as JSON: numbers that it cannot hold are text."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def dumps(value: Any) -> bytes:
    """JSON, also of NaN, infinities and what no encoder knows."""
    try:
        return json.dumps(value, separators=(",", ":"), default=str, allow_nan=False).encode()
    except ValueError:
        return json.dumps(plain(value), separators=(",", ":"), default=str).encode()


def plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, Mapping):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(v) for v in value]
    return value
