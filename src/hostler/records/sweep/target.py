"""The target of a sweep: done by a moment, for at most so much money; and how many workers that takes.

A target is written before its launch and never changed; the newest counts. Whoever closes a run looks at it
again: of all workers that have seen so many ends, the one that creates the look decides. The decision is
pure, and the simulation asks it as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict

from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import MOMENT, NUMBER, TEXT, WHOLE, checked, decode, encode, taken_apart
from hostler.store import NotFound, Store

RECENT = 8  # ends that tell how long a run takes now
CARE = 0.05  # of the time that is left: it is kept in reserve


@dataclass(frozen=True)
class Target:
    """`by` is in seconds since 1970, by the store's clock."""

    by: float
    fleet: str = ""
    workers: int = 1  # that it begins with
    most: int = 1  # workers that its money lasts for until its launch ends
    seconds: float = 0.0  # of a run, as it was thought to be
    seats: int = 1  # runs at once on one worker
    boot: float = 120.0  # seconds from asking for a worker until it works
    under: float | None = None


@dataclass(frozen=True)
class TargetView:
    """A sweep on its way, as whoever closed a run sees it."""

    left: float  # seconds until the target's moment
    open: int  # runs that have not ended
    workers: int  # there, or on their way
    took: Sequence[float] = ()  # seconds of runs that have ended, the newest last


def pace(target: Target, took: Sequence[float]) -> float:
    """Seconds of a run as the newest ends show it; as it was planned while there are few. Pure."""
    recent = list(took[-RECENT:])
    planned = max(0, 2 - len(recent))
    total = sum(recent) + planned * target.seconds
    return total / (len(recent) + planned)


def finish(target: Target, seen: TargetView, workers: int) -> float:
    """Seconds until so many workers have done the rest. Pure. Runs that are under way are half done, and the
    last ones end after each other; new workers have to come first."""
    each = pace(target, seen.took)
    places = max(1, workers * target.seats)
    running = min(seen.open, seen.workers * target.seats)
    work = (seen.open - running / 2) * each
    new = max(0, workers - seen.workers) / max(1, workers)
    return max(work / places, each / 2) + each / 2 * (seen.open > places) + new * target.boot


def wanted(target: Target, seen: TargetView) -> int:
    """Workers that the sweep should have now: as many as there are while it is in time; else the fewest with
    which it is, or all that its money allows. Pure. Never more than `most`, nor than there are open runs."""
    most = min(target.most, math.ceil(seen.open / max(1, target.seats)))
    time = seen.left * (1 - CARE)
    if seen.workers >= most or finish(target, seen, seen.workers) <= time:
        return seen.workers
    able = (n for n in range(seen.workers + 1, most + 1) if finish(target, seen, n) <= time)
    return next(able, most)


def write(store: Store, sweep: str, one: Target) -> int:
    """The number of the target."""
    while True:
        n = 1 + max(_numbers(store, sweep), default=0)
        if store.put(layout.target(sweep, n), encode(asdict(one)), if_absent=True):
            return n


def newest(store: Store, sweep: str) -> tuple[int, Target] | None:
    """The target that counts, and its number."""
    n = max(_numbers(store, sweep), default=0)
    if not n:
        return None
    key = layout.target(sweep, n)
    try:
        record = checked(decode(store.get(key).data, key), _FIELDS, key, ["by"])
    except NotFound:
        return None
    with taken_apart(key):
        known = {name: record[name] for name in Target.__dataclass_fields__ if record.get(name) is not None}
        return n, Target(**known)


def takes_look(store: Store, sweep: str, n: int, ended: int) -> bool:
    """Whether it is ours to decide after so many ends."""
    return store.put(layout.target_look(sweep, n, ended), encode({}), if_absent=True)


def _numbers(store: Store, sweep: str) -> list[int]:
    keys = (entry.key for entry in store.list(layout.targets(sweep), deep=False))
    names = (key.rsplit("/", 1)[1].removesuffix(".json") for key in keys if key.endswith(".json"))
    return [found[0] for name in names if (found := layout.numbers(name))]


_FIELDS = {
    "by": MOMENT,
    "fleet": TEXT,
    **dict.fromkeys(("workers", "most", "seats"), WHOLE),
    **dict.fromkeys(("seconds", "boot", "under"), NUMBER),
}
