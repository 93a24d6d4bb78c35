"""A fleet of real workers on a virtual clock: whichever is the furthest back in time makes the next request.

Each place of the fleet is a thread that stands still but for its turn, so that a week is played in the order
of its seed, and nobody ever waits. In a place one worker follows the other: each lives for some hours, and is
then killed, or frozen for up to three leases and killed later; meanwhile answers are lost, and the store
cannot be reached for some minutes. The wall clocks of some are wrong by hours. Scripts are played
(`test_three_weeks.py`); what happens is noted in the store (`virtual_evidence.py`).
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from staged import JOB, TIMING, Clock, Killed, Seat, StagedWorker
from test_three_weeks import LongScript, Weeks, trained
from virtual_evidence import WatchedStore

from hostler.errors import StoreUnreachable
from hostler.records import body
from hostler.records.run.log import RunKey
from hostler.records.sweep import sweeps
from hostler.spec.job import Job
from hostler.worker.claim.claimant import Claimant
from hostler.worker.claim.finder import Finder
from hostler.worker.pulse import Pulse

HOUR = 3600.0
LEASE = 900.0
SLOW = replace(TIMING, lease=LEASE)  # scripts beat after each of their steps, which are minutes long
REFUSED = 5.0  # seconds until a request to a store that cannot be reached has failed


class Turns:
    """Who goes on: the place whose clock is the furthest back."""

    def __init__(self, count: int) -> None:
        self._times = dict.fromkeys(range(count), 0.0)
        self._lock = threading.Condition()

    def wait(self, place: int, now: float) -> None:
        with self._lock:
            self._times[place] = now
            self._lock.notify_all()
            self._lock.wait_for(lambda: place == min(self._times, key=lambda p: (self._times[p], p)))

    def leave(self, place: int) -> None:
        with self._lock:
            del self._times[place]
            self._lock.notify_all()


@dataclass
class Weather:
    """What happens to one worker, by a seed: moments of its own clock."""

    dies: float
    sleeps: float  # when it is frozen, and for how many leases
    leases: float
    away: tuple[float, float]  # while it cannot reach the store
    ahead: float  # seconds by which its wall clock is wrong
    rng: random.Random
    lost: float = 0.002  # share of answers that are lost

    @classmethod
    def drawn(cls, rng: random.Random, now: float, life: float) -> Weather:
        """A worker that lives for `life` seconds on average."""
        lives = rng.expovariate(1 / life)
        freezes, cut = rng.random() < 0.4, rng.random() < 0.4
        sleeps = now + rng.uniform(0, lives) if freezes else float("inf")
        begin = now + rng.uniform(0, lives) if cut else float("inf")
        away = (begin, begin + rng.uniform(60, 2 * LEASE))
        ahead = rng.uniform(-12, 12) * HOUR if rng.random() < 0.3 else 0.0
        return cls(now + lives, sleeps, rng.uniform(0.3, 3.0), away, ahead, rng)


class WallClocks:
    """In the place of Python's `time`: the wall clock of the worker whose thread asks, which may be wrong."""

    mine = threading.local()

    @classmethod
    def time(cls) -> float:
        return cls.mine.time()  # type: ignore[no-any-return]


class FleetSeat(Seat):
    """The way to the store of one worker, which waits for its turn before each request, and has weather."""

    def __init__(
        self,
        store: WatchedStore,
        session: str,
        clock: Clock,
        turn: Callable[[], None],
        weather: Weather,
    ) -> None:
        super().__init__(store)
        self.watched, self.session = store, session
        self.clock, self.weather, self._turn, self.seen = clock, weather, turn, Counter[str]()
        self._cut = False  # it has noticed that the store cannot be reached
        self._note("started", clock=weather.ahead)

    def _ask(self, request: str, send: Callable[[], Any]) -> Any:
        weather, clock = self.weather, self.clock
        if self.dead:
            raise Killed
        self._turn()
        if clock.now >= weather.sleeps:
            weather.sleeps = float("inf")
            self._note("frozen", leases=weather.leases)
            clock.now += weather.leases * LEASE
            self._turn()  # others have gone on; it sends what it meant to send
        if clock.now >= weather.dies:
            self.dead = True
            self._note("killed")
            raise Killed
        if weather.away[0] <= clock.now < weather.away[1]:
            if not self._cut:
                self._cut = True
                self._note("cut", seconds=weather.away[1] - clock.now)
            clock.now += REFUSED
            raise StoreUnreachable("not reached")
        self.watched.clock = clock
        answer = send()
        if weather.rng.random() < weather.lost:
            self._note("answer-lost", request=request)
            raise StoreUnreachable("the answer is lost")
        return answer

    def _note(self, what: str, **facts: Any) -> None:
        self.seen[what] += 1
        self.watched.note(what, self.clock.now, session=self.session, **facts)


class FleetScript(LongScript):
    """A script whose weights begin with its run's number."""

    first = ""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._value = self._value or self.first


class FleetWorker(StagedWorker):
    def __init__(self, fleet: Fleet, session: str, seat: FleetSeat) -> None:
        super().__init__(fleet, session)  # type: ignore[arg-type]
        self.clock, self.seat = seat.clock, seat
        facts = {"host": f"host-{session}"}
        self._finder = Finder(seat, Claimant(session, facts), SLOW, self.clock)
        self._pulse = Pulse(seat, session, SLOW, facts, self.clock)
        machine = replace(self._machine, store=seat, timing=SLOW, clock=self.clock, start=self._begin)
        self._machine, self._weeks = machine, fleet.weeks

    def _begin(self, argv: list[str], *, cwd: Path, env: dict[str, str], folder: Path, log: Path) -> Any:
        assert self.execution is not None
        first = argv[argv.index("--i") + 1]
        kind = type("Played", (FleetScript,), {"weeks": self._weeks, "clock": self.clock, "first": first})
        return kind(folder, log, self.execution.attempt.number, self._between)

    def serve(self) -> None:
        """Take runs until none is open, or it is killed."""
        try:
            while self._look():
                self.clock.now += LEASE / 5
        except Killed:
            self.seat.dead = True


@dataclass
class Fleet:
    """Runs of one sweep in a store, and so many places for workers."""

    cache: Path
    runs: int
    places: int
    weeks: Weeks
    life: float  # seconds that a worker lives, on average
    seed: int
    store: WatchedStore = field(default_factory=WatchedStore)
    moment: bool = False
    seen: Counter[str] = field(default_factory=Counter)
    took: float = 0.0  # seconds of the virtual clock until the last worker left
    broken: list[BaseException] = field(default_factory=list)

    def __post_init__(self) -> None:
        runs = tuple({"i": n} for n in range(self.runs))
        self.job = Job(**{**vars(JOB), "name": "fleet", "runs": runs, "retries": 1000})
        assert sweeps.submit(self.store, self.job)
        self._turns = Turns(self.places)

    @property
    def keys(self) -> list[RunKey]:
        return [RunKey(self.job.name, self.job.run_id(n)) for n in range(self.runs)]

    def play(self) -> None:
        """All places until nothing is left for any of them."""
        threads = [threading.Thread(target=self._place, args=(n,)) for n in range(self.places)]
        with patch.object(body, "time", WallClocks):  # that of whoever writes a record
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        if self.broken:
            raise self.broken[0]

    def _place(self, place: int) -> None:
        rng, now = random.Random(f"{self.seed} {place}"), 0.0
        try:
            for n in range(10_000):
                clock, weather, session = Clock(now), Weather.drawn(rng, now, self.life), f"w{place}-{n}"

                def turn(clock: Clock = clock) -> None:
                    self._turns.wait(place, clock.now)

                turn()
                seat = FleetSeat(self.store, session, clock, turn, weather)
                WallClocks.mine.time = lambda clock=clock, weather=weather: clock.now + weather.ahead
                worker = FleetWorker(self, session, seat)
                worker.serve()
                self.seen.update(seat.seen)
                self.took = max(self.took, clock.now)
                if not seat.dead:
                    return
                now = clock.now + rng.uniform(0.1, 1.0) * HOUR  # until the platform has another machine
        except BaseException as error:
            self.broken.append(error)
        finally:
            self._turns.leave(place)


def weights_of(run: int, steps: int) -> str:
    """What an undisturbed script of this run ends with."""
    weights = str(run)
    for step in range(1, steps + 1):
        weights = trained(weights, step)
    return weights
