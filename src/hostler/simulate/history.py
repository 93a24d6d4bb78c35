"""Reads from the store how long earlier runs took, and how machines came and went.

Reads, writes nothing. What a function makes of rows and stays is pure.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise

from hostler.frozen import dataclass
from hostler.records.launch import launches
from hostler.records.launch.launches import Generation, Stay
from hostler.records.launch.settlement import is_there
from hostler.records.rows import Row, rows
from hostler.records.run.history import Try, tries
from hostler.records.run.log import RunLog
from hostler.records.sweep import sweeps
from hostler.settings import Timing
from hostler.simulate.rates import PreemptionRate
from hostler.simulate.times import VaryingSeconds
from hostler.spec.names import slug
from hostler.spec.states import DONE
from hostler.spec.units import show_duration
from hostler.store import Store

IDLE = 60.0  # seconds: a longer gap between two runs of a worker was no work of its own
OVERLAP = 1.0  # seconds: the next run may begin while the end of one is still being written
READ = 50  # logs of runs that took several attempts
AT_ONCE = 16  # of these logs
LEAST = 3600.0  # machine seconds that a rate needs behind it


@dataclass(frozen=True)
class Launches:
    """Times and losses seen in a fleet's launches."""

    seconds: float = 0.0  # of machines
    losses: int = 0
    boots: tuple[float, ...] = ()  # from when a machine was made until its worker began
    comes: tuple[float, ...] = ()  # from the launch until its first machines were made
    parts: tuple[float, ...] = ()  # from the last word of its workers until all was gone

    @property
    def rate(self) -> PreemptionRate | None:
        """The rate at which its machines are taken away; None if too little is known."""
        if self.seconds < LEAST:
            return None
        text = f"{self.losses} in {show_duration(round(self.seconds))} of machines"
        return PreemptionRate(self.losses / self.seconds, text)


@dataclass(frozen=True)
class Known:
    lengths: VaryingSeconds | None = None
    gaps: VaryingSeconds | None = None
    scouted: bool = False  # no run has ended: the lengths are those of a scout


def of_runs(store: Store, names: Iterable[str]) -> Known:
    """The durations of these sweeps' runs, and the pauses between them."""
    there = [name for name in names if sweeps.is_there(store, name)]
    found = rows(store, there, touched=True) if there else []
    again = sorted((row for row in found if row.attempt > 1), key=lambda row: row.ended or math.inf)
    unread, read = again[:-READ], again[-READ:]
    since = max((row.ended or 0.0 for row in unread), default=0.0)
    took, between = lengths(found), gaps(found, _attempts(store, read), since)
    return Known(VaryingSeconds(took) if took else None, VaryingSeconds(between) if between else None)


def _attempts(store: Store, found: Sequence[Row]) -> list[Try]:
    """All attempts of these runs. A log is read entry by entry, and a bucket is far away: many at a time."""
    if not found:
        return []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        logs = list(pool.map(lambda row: RunLog(store, row.key).read_on().entries, found))
    return [one for entries in logs for one in tries(entries)]


def lengths(found: Sequence[Row]) -> tuple[float, ...]:
    """Seconds of runs that were done; of those that nobody disturbed, if there are any. Pure."""
    done = [row for row in found if row.state == DONE and row.seconds and not row.copy_of]
    whole = [row for row in done if row.attempt <= 1]
    return tuple(row.seconds for row in whole or done if row.seconds)


def gaps(found: Sequence[Row], tried: Sequence[Try] = (), since: float = 0.0) -> tuple[float, ...]:
    """Seconds from a run's end to the next one's start on the same machine, after a moment. Pure. `tried`:
    the attempts of runs that took several; nobody pauses in one, nor where one took its machine along."""
    by_host: dict[str, list[tuple[float, float, bool]]] = defaultdict(list)
    for row in found:
        if row.attempt == 1 and row.host and row.started and row.seconds:
            by_host[row.host].append((row.started, row.started + row.seconds, True))
    for one in tried:
        by_host[one.host].append((one.started, one.started + (one.seconds or 0.0), one.outcome == DONE))
    seen = []
    for spans in by_host.values():
        for (_, ended, was_done), (begins, _, _) in pairwise(sorted(spans)):
            if was_done and ended >= since:
                seen.append(begins - ended)
    return tuple(max(0.0, number) for number in seen if -OVERLAP <= number <= IDLE)


def of_fleet(store: Store, fleet: str, now: float, timing: Timing) -> Launches:
    """All launches of a fleet that took runs."""
    generations = [
        generation for generation in launches.of_fleet(store, slug(fleet)) if not generation.by_hand
    ]
    launcheses = []
    for one in generations:
        stays = launches.stays(store, one.fleet, one.number)
        launcheses.append(launch(one, stays, launches.gone_at(store, one.fleet, one.number), now, timing))
    return Launches(
        sum(one.seconds for one in launcheses),
        sum(one.losses for one in launcheses),
        tuple(time for one in launcheses for time in one.boots),
        tuple(time for one in launcheses for time in one.comes),
        tuple(time for one in launcheses for time in one.parts),
    )


def launch(
    one: Generation, found: Sequence[Stay], gone: float | None, now: float, timing: Timing
) -> Launches:
    """Pure. Of machines that come with their launch, each that is more than it has workers came in another's
    place; of others, a worker that fell silent was lost."""
    ages, boots = dict[str, float](), dict[str, float]()
    for stay in found:
        if stay.machine:
            ages[stay.machine] = max(ages.get(stay.machine, 0.0), stay.age)
            began = max(0.0, stay.age - stay.seconds)  # so old it was when this worker of it began
            boots[stay.machine] = min(boots.get(stay.machine, began), began)
    if ages:
        lost = max(0, len(ages) - one.workers)
        return Launches(
            sum(ages.values()), lost, tuple(boots.values()), _comes(one, found), _parts(found, gone)
        )
    lost = sum(not stay.over and not is_there(stay, now, timing) for stay in found)
    return Launches(sum(stay.seconds for stay in found), lost)


def _comes(one: Generation, found: Sequence[Stay]) -> tuple[float, ...]:
    made: dict[str, float] = {}
    for stay in found:
        if stay.machine:
            made[stay.machine] = min(made.get(stay.machine, stay.modified), stay.modified - stay.age)
    return tuple(max(0.0, when - one.began) for when in sorted(made.values())[: one.workers])


def _parts(found: Sequence[Stay], gone: float | None) -> tuple[float, ...]:
    ended = [stay.modified for stay in found if stay.over]
    return (max(0.0, gone - max(ended)),) if ended and gone is not None else ()
