"""Keys that a pack may hold: entries and ends of a run's log, its metrics, output and environments. Pure.

Each belongs to a run and has a number: that of a log entry, or of an attempt, which is that of its claim.
A pack covers the numbers up to the newest entry that it holds.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from hostler.records import layout
from hostler.spec.names import is_part

LOGS = ("log", "ends")  # folders of a sweep
SERIES = ("metrics", "logs", "env")  # folders of a run
REREAD = 999_999  # rank of points that `hostler metrics` adds later: they stay objects of their own


class RecordPlace(NamedTuple):
    sweep: str
    run: str
    number: int
    series: bool  # of the run's own folder


def place(key: str) -> RecordPlace | None:
    """The place of a key that a pack may hold; None of any other."""
    if key.startswith(layout.SWEEPS):
        return _of_log(key)
    return _of_series(key) if key.startswith(layout.RUNS) else None


def _of_log(key: str) -> RecordPlace | None:
    parts = key.split("/")
    if len(parts) != 4 or parts[2] not in LOGS or not layout.is_log_entry(key):
        return None
    run, k = layout.split_log_entry(key)
    return RecordPlace(parts[1], run, k, False)


def _of_series(key: str) -> RecordPlace | None:
    parts = key.split("/")
    if len(parts) != 4 or parts[2] not in SERIES or not (sweep := sweep_of(parts[1])):
        return None
    if parts[2] == "env":
        found = layout.numbers(parts[3].removesuffix(".json"))
        return RecordPlace(sweep, parts[1], found[0], True) if found else None
    fragment = layout.split_fragment(key)
    if fragment is None or fragment[1] == REREAD:
        return None
    return RecordPlace(sweep, parts[1], fragment[0], True)


@lru_cache(maxsize=4096)
def sweep_of(run: str) -> str:
    """The sweep of a run, by its id; '' if it is none."""
    sweep = run[8:-7]
    return sweep if layout.is_run(run) and run[-7:-6] == "-" and is_part(sweep) else ""


def owner(prefix: str) -> str:
    """The sweep whose packs may hold keys under a prefix of one log, or of one run; '' of any other."""
    parts = prefix.split("/")
    if len(parts) == 4 and prefix.startswith(layout.SWEEPS) and parts[2] in LOGS:
        return parts[1] if is_part(parts[1]) else ""
    return sweep_of(parts[1]) if len(parts) > 2 and prefix.startswith(layout.RUNS) else ""
