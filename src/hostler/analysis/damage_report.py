"""Reports what readers could not read: as a warning, unless a program collects it."""

from __future__ import annotations

import warnings
from collections.abc import Callable

Say = Callable[[str], None]


def once(say: Say) -> Say:
    """The same, for which a line that comes again is none."""
    said = set[str]()

    def tell(line: str) -> None:
        if line not in said:
            said.add(line)
            say(line)

    return tell


def warn(line: str) -> None:
    warnings.warn(f"hostler: {line}", stacklevel=2)
