"""Messages of the library to a person: one line each, on standard error."""

from __future__ import annotations

import sys


def say(line: str) -> None:
    try:
        print(f"hostler: {line}", file=sys.stderr, flush=True)
    except (OSError, ValueError):  # closed, or full: nobody to tell
        pass
