"""A parameter that names another run: `{best-of: SWEEP}` or `{run: RUN}`, with `file:` one file of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

BEST, RUN, FILE = "best-of", "run", "file"


def is_reference(value: Any) -> bool:
    if not isinstance(value, Mapping) or (BEST in value) == (RUN in value):
        return False
    return all(k in (BEST, RUN, FILE) and isinstance(v, str) and v for k, v in value.items())
