"""Where readers say what they could not read: a warning, unless a program wants to tell it itself."""

from __future__ import annotations

import warnings
from collections.abc import Callable

Say = Callable[[str], None]


def warn(line: str) -> None:
    warnings.warn(f"hostler: {line}", stacklevel=2)
