"""Pace of looks at a store by somebody who waits for runs.

A folder is looked at often in the beginning: whoever waits for what is over in a moment is told at once. A
request to a bucket costs money.
"""

from __future__ import annotations

SOON = 0.05  # seconds between two looks at a folder at least
PART = 10  # of the time that has gone by


def pause(waited: float, longest: float, *, folder: bool) -> float:
    """Seconds until the next look, after so many. Pure."""
    return min(longest, max(SOON, waited / PART)) if folder else longest
