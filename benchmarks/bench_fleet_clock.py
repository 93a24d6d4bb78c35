"""Fleets on a virtual clock: what real finders ask of a bucket that answers each request after 10 to 30 ms.

Each worker has a finder, logs, a view of packs and heartbeats of its own, and goes on when its request is
answered; whichever is the furthest back in time is next. So nobody waits, and whatever else the machine does
changes no number. The bucket takes any number of requests a second. Runs are over at once.

python benchmarks/bench_fleet_clock.py --workers 1000 --runs 100000 --until 90000
"""

from __future__ import annotations

import argparse
import gc
import heapq
import random
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ended_sweep
from row import Row
from watched import Watched

from hostler.records import layout
from hostler.records.packs.packed_store import PackedStore
from hostler.records.run import heartbeats
from hostler.settings import Timing
from hostler.store.memory import MemoryStore
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.finder import Finder

LATENCY, JITTER = 0.02, 0.5  # seconds of a request, and the part by which it may be longer or shorter
LEAST = 3  # requests of a run: a claim, an end, the end's copy
FLEETS = ((1, 50), (10, 500), (100, 5_000))  # workers, runs
REQUESTS = {1: 1.5, 10: 1.5, 100: 1.6}  # times the least, last looks included
BEATS = "heartbeats"
SAMPLE = 5  # finders that are measured


@dataclass
class Played:
    """Outcome of a fleet's work up to a moment."""

    ended: int
    seconds: float  # of the virtual clock
    lost: int  # claims that went to another
    asked: Counter[str] = field(default_factory=Counter)  # operation and kind of object -> requests
    kilobytes: float = 0.0  # of a finder, and all that it alone holds

    @property
    def requests(self) -> int:
        return self.asked.total() - self.asked[BEATS]


@dataclass
class Worker:
    """One worker's place in time."""

    number: int
    luck: random.Random
    timing: Timing = field(default_factory=Timing)
    now: float = 0.0
    beaten: float = 0.0
    sequence: int = 1

    @property
    def session(self) -> str:
        return f"w{self.number:05d}"

    def clock(self) -> float:
        return self.now


class Fleet:
    """So many workers and runs of one sweep, played in the order of time."""

    def __init__(self, workers: int, runs: int, until: int | None = None) -> None:
        """`until`: how many runs have ended when it is broken off; None: when all workers have left."""
        self._now, self._until, self._ended = 0.0, until, 0
        self._bucket = MemoryStore(clock=lambda: self._now)
        self._watched = Watched(self._bucket)
        self._workers = [Worker(n, random.Random(n)) for n in range(workers)]
        self._asked: Counter[str] = Counter()
        self._finders: list[tuple[Finder, PackedStore]] = []
        with tempfile.TemporaryDirectory() as folder:
            ended_sweep.submit(self._bucket, Path(folder), runs)
        for worker in self._workers:
            heartbeats.beat(self._bucket, worker.session, 1, {})

    def play(self) -> Played:
        from greenlet import getcurrent, greenlet  # playwright brings it; a thread for each would starve

        hub = getcurrent()
        places: dict[Any, Worker] = {greenlet(self._work, hub): worker for worker in self._workers}
        turns = [(0.0, worker.number, place) for place, worker in places.items()]
        heapq.heapify(turns)

        def ask(operation: str, key: str) -> None:
            """A request: it is answered a moment later, after whatever the others do until then."""
            place = getcurrent()
            worker = places[place]
            self._asked[BEATS if key.startswith("alive/") else f"{operation} {_kind(key)}"] += 1
            worker.now += LATENCY * worker.luck.uniform(1 - JITTER, 1 + JITTER)
            heapq.heappush(turns, (worker.now, worker.number, place))
            hub.switch()

        self._bucket.before = ask
        while turns and (self._until is None or self._ended < self._until):
            self._now, _, place = heapq.heappop(turns)
            place.switch(places[place])
        self._bucket.before = None
        some = self._finders[::-1][:SAMPLE]
        held = sum(_size(finder, but=self._bucket) for finder in some) / len(some)
        return Played(self._ended, self._now, self._watched.lost, self._asked, held / 1024)

    def _work(self, worker: Worker) -> None:
        view = PackedStore(self._watched, worker.clock)
        finder = Finder(view, Claimant(worker.session), worker.timing, worker.clock, rng=worker.luck)
        self._finders.append((finder, view))
        while taken := finder.find(lambda ask: True, lambda ask: True).taken:
            taken.attempt.end("done")
            self._ended += 1
            if worker.now - worker.beaten >= worker.timing.beat:
                worker.beaten, worker.sequence = worker.now, worker.sequence + 1
                heartbeats.beat(view, worker.session, worker.sequence, {})


def _kind(key: str) -> str:
    """The folder of a sweep that a key lies in."""
    parts = key.split("/")
    return parts[2] if key.startswith(layout.SWEEPS) and len(parts) > 3 else parts[0]


def _size(roots: Iterable[object], *, but: object) -> int:
    """Bytes of these and of what they refer to, without code and without the bucket."""
    seen, left, total = {id(but)}, list(roots), 0
    while left:
        one = left.pop()
        if id(one) in seen or isinstance(one, (type, types.ModuleType, types.FunctionType, types.CodeType)):
            continue
        seen.add(id(one))
        total += sys.getsizeof(one)
        left += gc.get_referents(one)
    return total


def main(
    fleets: Sequence[tuple[int, int]] = FLEETS, until: int | None = None, *, show: bool = False
) -> list[Row]:
    try:
        import greenlet  # noqa: F401
    except ModuleNotFoundError:
        print("bench_fleet_clock: no greenlet; not measured", file=sys.stderr)
        return []
    rows: list[Row] = []
    for workers, runs in fleets:
        played = Fleet(workers, runs, until).play()
        of = f"the first {until:,} of {runs:,}" if until else f"{runs:,}"
        what = f"{workers:,} workers, {of} runs, virtual clock"
        speed = played.ended / played.seconds
        rows += [
            Row(
                f"{what}: requests a run",
                played.requests / played.ended,
                LEAST,
                REQUESTS.get(workers),
                "requests",
            ),
            Row(f"{what}: claims lost, a run", played.lost / played.ended, 0.1, 1, "claims"),
            Row(f"{what}: claims a second", speed, workers / LATENCY / LEAST, None, "claims"),
            Row(f"{what}: memory of a finder", played.kilobytes, 100, None, "kB"),
        ]
        if show:
            for kind, count in played.asked.most_common():
                print(f"{kind}: {count:,}, {count / played.ended:.3f} a run", flush=True)
            print(f"{played.seconds:.2f} s", flush=True)
    return rows


if __name__ == "__main__":
    given = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    given.add_argument("--workers", type=int, default=100)
    given.add_argument("--runs", type=int, default=5_000)
    given.add_argument("--until", type=int, help="break off once so many runs have ended")
    chosen = given.parse_args()
    for row in main([(chosen.workers, chosen.runs)], chosen.until, show=True):
        print(f"{row.name}: {row.ours:.4g} {row.unit}", flush=True)
