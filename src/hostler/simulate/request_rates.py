"""A fleet against the request rates that a bucket's owner publishes: how much of its time it trains.

Workers claim, run and end on a virtual clock. Their requests go to one prefix, which answers so many reads
and writes a second and no more; what comes faster waits its turn. Heartbeats, looks at logs and fragments
take their share of both first. How many requests a claim makes follows from the finder's own bounds. A large
fleet is simulated as a small one before rates that are smaller by as much.
"""

from __future__ import annotations

import heapq
from math import ceil

from hostler.frozen import dataclass
from hostler.settings import Timing
from hostler.worker.claim.finder import WHOLE
from hostler.worker.claim.session_watch import WATCHERS

PAGE = 1000  # names in one answer
AGENTS = 400  # workers that are simulated one by one
CYCLES = 6  # runs of each of them
ENDS = 2.02  # writes when a run is over: end, copy, a hundredth of a segment or two


@dataclass(frozen=True)
class BucketRates:
    """Requests a second that one prefix takes, as published, and seconds until one is answered."""

    name: str
    reads: float
    writes: float
    latency: float = 0.02


S3 = BucketRates("S3", 5500, 3500)
GCS = BucketRates("GCS", 5000, 1000)


@dataclass(frozen=True)
class Scale:
    """A sweep and its fleet, one run a worker; `length`: seconds of a run."""

    workers: int
    runs: int
    length: float
    timing: Timing = Timing()
    logs: bool = True  # runs that print and log: two fragments in every `flush`
    whole: float = WHOLE  # workers times runs up to which every worker reads all names once a lease


def background(scale: Scale) -> tuple[float, float]:
    """Reads and writes a second beside claims and ends, while all train: beats, a look at each run's log with
    each, lists of the heartbeats, fragments. Pure."""
    timing, workers = scale.timing, scale.workers
    beats = workers / timing.beat
    lists = min(workers, WATCHERS) / timing.beat + max(0, workers - WATCHERS) / timing.lease
    fragments = 2 * workers / timing.flush if scale.logs and scale.length >= timing.flush else 0.0
    return beats + lists * ceil(workers / PAGE), beats + fragments


def reads_of_a_claim(scale: Scale) -> float:
    """Requests that find a run, on average over the sweep. Pure."""
    timing, workers, length = scale.timing, scale.workers, scale.length
    loaded = min(1.0, length / timing.beat)  # all sweeps asked for, and the heartbeats
    looks = 2 * min(1.0, length / timing.fresh) * (1 - loaded)  # else spec and halts alone
    deep = min(1.0, length / timing.lease)  # looks at all that is open, for each claim
    since = workers * max(1.0, timing.lease / length)  # runs that have ended since the one before
    opened = ceil(since / PAGE) + ceil((workers + since) / PAGE)
    drawn = min(1.0, scale.whole / (workers * scale.runs))
    names = drawn * max(2.0, names_pages(scale) / 2) + (1 - drawn) * opened
    return looks + loaded * (3 + ceil(workers / PAGE)) + deep * names


def names_pages(scale: Scale) -> float:
    """Pages of names of a sweep that is over: two entries and an end for each run. Pure."""
    return 3 * scale.runs / PAGE


def last_looks(scale: Scale, rates: BucketRates) -> float:
    """Seconds of looking when a sweep is over: every worker reads all names once more before it leaves, so
    that none leaves a run behind. Pure."""
    return max(
        scale.workers * names_pages(scale) / rates.reads,
        names_pages(scale) * rates.latency,
    )


def demand(scale: Scale) -> tuple[float, float]:
    """Reads and writes a second if nothing ever waited. Pure."""
    reads, writes = background(scale)
    claims = scale.workers / scale.length
    return reads + claims * reads_of_a_claim(scale), writes + claims * (1 + ENDS)


class _Prefix:
    """The turns of one kind of request: a place in the queue for each, first come first served."""

    def __init__(self, rate: float, latency: float) -> None:
        self._each, self._latency, self._free = 1 / rate, latency, 0.0

    def done(self, now: float, count: float) -> float:
        """When so many requests, one after the other, are answered."""
        self._free = max(self._free, now) + count * self._each
        return max(self._free, now) + count * self._latency


def trained(scale: Scale, rates: BucketRates) -> float:
    """The share of the workers' time in which they carry runs out, at the middle of the sweep. 0 if not even
    heartbeats come through. Pure."""
    reads, writes = background(scale)
    if reads >= rates.reads or writes >= rates.writes:
        return 0.0
    agents = min(AGENTS, scale.workers)
    part = agents / scale.workers
    read = _Prefix((rates.reads - reads) * part, rates.latency)
    write = _Prefix((rates.writes - writes) * part, rates.latency)
    looks, busy = reads_of_a_claim(scale), 0.0
    begin = scale.length  # when the last of them has begun: they come one by one
    agenda = [(begin * n / agents, n, "claim") for n in range(agents)]
    left, spent, since = [CYCLES] * agents, 0.0, [begin * n / agents for n in range(agents)]
    while agenda:
        now, n, step = heapq.heappop(agenda)
        if step == "claim":
            heapq.heappush(agenda, (read.done(now, looks), n, "claimed"))
        elif step == "claimed":
            heapq.heappush(agenda, (write.done(now, 1) + scale.length, n, "end"))
            busy += scale.length
        elif step == "end":
            heapq.heappush(agenda, (write.done(now, ENDS), n, "ended"))
        else:
            left[n] -= 1
            if left[n]:
                heapq.heappush(agenda, (now, n, "claim"))
            else:
                spent += now - since[n]
    return busy / spent


PATIENT = Timing(beat=60.0, lease=360.0, flush=300.0, flush_max=300.0)
FLEETS = ((100, 10_000), (1_000, 100_000), (10_000, 1_000_000))
LENGTHS = (10.0, 60.0, 600.0, 3600.0)


def table() -> str:
    """Rows for the docs: what fleets ask for, and how much of their time they train."""
    rows = [
        "| workers, runs | a run | reads a second | writes a second | trains: S3 | GCS | GCS, patient |",
        "|---|---|---|---|---|---|---|",
    ]
    for workers, runs in FLEETS:
        for length in LENGTHS:
            scale = Scale(workers, runs, length)
            asked = [f"{number:,.0f}" for number in demand(scale)]
            shares = [trained(scale, S3), trained(scale, GCS), trained(patient(scale), GCS)]
            cells = [
                f"{workers:,}, {runs:,}",
                f"{length:,.0f} s",
                *asked,
                *(f"{share:.0%}" for share in shares),
            ]
            rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


def patient(scale: Scale) -> Scale:
    """The same with beats and fragments that come less often."""
    return Scale(scale.workers, scale.runs, scale.length, PATIENT, scale.logs, scale.whole)


def last_look_table() -> str:
    """Rows for the docs: what the end of a sweep costs."""
    rows = ["| workers, runs | lists | on S3 at least |", "|---|---|---|"]
    for workers, runs in FLEETS:
        scale = Scale(workers, runs, 600.0)
        lists, seconds = workers * names_pages(scale), last_looks(scale, S3)
        rows.append(f"| {workers:,}, {runs:,} | {lists:,.0f} | {seconds:,.0f} s |")
    return "\n".join(rows)
