"""Number of runs that a task of a fleet carries out. Pure."""

from __future__ import annotations

from hostler.backends.arrays import arrays
from hostler.spec.project import Fleet


def runs_each(fleet: Fleet, runs: int) -> int | None:
    """Runs that a worker ends before it leaves; None for as many as there are."""
    return arrays(fleet, runs)[0].runs
