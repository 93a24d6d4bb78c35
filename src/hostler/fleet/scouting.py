"""Begins the first runs of a sweep on candidate fleets, measures their steps, and lets the machines go.

Each candidate starts one worker, which takes a run as every worker does; what it has trained is saved when
its machine goes, so that the run goes on from there on whatever fleet the sweep gets. A launch has a deadline
of its own: if nobody is left to end it, its machines end by themselves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hostler.errors import HostlerError
from hostler.fleet.fleet_choice import is_there, on_name
from hostler.fleet.launcher import Launcher
from hostler.records import interest
from hostler.records.launch import launches
from hostler.records.run import log
from hostler.records.run.log import RunKey, RunLog
from hostler.records.series.metrics import Fragment, FragmentCache
from hostler.records.sweep import measured_rates
from hostler.records.sweep.measured_rates import Speed
from hostler.spec.job import Job
from hostler.spec.names import slug
from hostler.store import Store

LOOK = 1.0  # seconds between two looks
ROOM = 900.0  # seconds that a launch lasts beyond its measurement: machines come, boot, save
Attempt = tuple[RunKey, int, float, bool]  # the run, its number, when it was claimed, whether it runs
UNSEEN = 600.0  # seconds after its start in which a candidate shows its first step


@dataclass
class ScoutCandidate:
    """A fleet that is tried, and how far that is."""

    workers: Launcher
    number: int = 0  # of its launch
    started: float | None = None  # when its workers had been started
    since: float | None = None  # when its first steps were seen
    speed: Speed | None = None
    seats: int = 1  # runs at once on its machine
    problem: str = ""
    over: bool = False

    @property
    def name(self) -> str:
        return self.workers.fleet.name

    @property
    def launch(self) -> str:
        return f"{slug(self.name)}/{self.number}"


def candidate(workers: Launcher, store: Store, job: Job, seconds: float) -> ScoutCandidate:
    """One worker of the fleet, or as many as a run takes, which is gone soon after its measurement."""
    fleet = workers.fleet
    hours = (seconds + ROOM) / 3600
    hours = hours if fleet.max_hours is None else min(hours, fleet.max_hours)
    small = replace(fleet, workers=job.resources.nodes, max_hours=hours)
    found = ScoutCandidate(replace(workers, fleet=small, awaits=False))
    if is_there(workers.engine, fleet):
        found.problem = f"it has workers already; hostler down {on_name(fleet.name)} ends them"
        found.over = True
    found.number = launches.next_number(store, slug(fleet.name))
    return found


@dataclass
class Scout:
    """Watches candidates until each is measured, or is known not to work."""

    store: Store
    job: Job
    seconds: float  # that each is measured for, after its first steps
    end: Callable[[Launcher], None]  # ends a fleet's workers; they save first
    say: Callable[[str], None]
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep
    _caches: dict[str, FragmentCache] = field(default_factory=dict)

    def run(self, found: Sequence[ScoutCandidate]) -> None:
        """All at once, each in a thread of its own: machines take their time to come and to go."""
        threads = [
            threading.Thread(target=self._try, args=(one,), name=f"scout {one.name}", daemon=True)
            for one in found
            if not one.over
        ]
        for thread in threads:
            thread.start()
        try:
            with interest.Looking(self.store, self.clock) as looking:
                while any(thread.is_alive() for thread in threads):
                    looking.look()
                    self._look([one for one in found if not one.over])
                    self.pause(LOOK)
        finally:
            for one in found:  # after Ctrl-C, too: their threads see it and end the machines
                one.over = True
            for thread in threads:
                thread.join()

    def _try(self, one: ScoutCandidate) -> None:
        try:
            one.workers.start([self.job.name], one.workers.fleet.workers, [self.job])
            one.started = self.clock()
            while not one.over:
                self.pause(LOOK / 4)
        except HostlerError as error:
            one.problem, one.over = str(error), True
            return
        try:
            self.end(one.workers)
        except HostlerError as error:
            self.say(f"{one.name}: {error}")

    def _look(self, found: Sequence[ScoutCandidate]) -> None:
        attempts = self._attempts({one.launch: one for one in found})
        now = self.clock()
        for one in found:
            own = attempts.get(one.launch, [])
            speeds = list(filter(None, (self._speed(*attempt[:3]) for attempt in own)))
            one.speed = measured_rates.together(speeds) or one.speed
            one.seats = max(one.seats, sum(running for *_, running in own))
            one.since = now if one.speed and one.since is None else one.since
            if one.speed and one.speed.span >= self.seconds:
                self.say(f"{one.name}: {one.speed.rate:.3g} steps a second")
                one.over = True
            elif one.started is not None and now - one.started > self.seconds + ROOM:
                one.over = True  # its launch ends now: what it has shown must do
                one.problem = "" if one.speed else "no step was seen"
            elif launches.gone_at(self.store, slug(one.name), one.number) is not None:
                one.over = True
                one.problem = "" if one.speed else "its workers left before a step was seen"
            elif one.started is not None and one.since is None and now - one.started > self.seconds + UNSEEN:
                one.problem, one.over = "no step was seen", True

    def _attempts(self, wanted: Mapping[str, ScoutCandidate]) -> dict[str, list[Attempt]]:
        attempts: dict[str, list[Attempt]] = {}
        for run, head in log.heads(self.store, self.job.name).items():
            key = RunKey(self.job.name, run)
            for number, entry in enumerate(RunLog(self.store, key).read_to(head).entries, start=1):
                if entry.get("kind") == log.CLAIM and entry.get("fleet") in wanted:
                    attempts.setdefault(entry["fleet"], []).append(
                        (key, number, float(entry["at"]), number == head)
                    )
        return attempts

    def _speed(self, key: RunKey, attempt: int, began: float) -> Speed | None:
        cache = self._caches.setdefault(key.run, FragmentCache())
        return of_attempt(cache.update(self.store, key.run), attempt, began)


def of_attempt(fragments: Sequence[Fragment], attempt: int, began: float) -> Speed | None:
    """Speed of one attempt by what it has written. Pure."""
    own = [fragment for fragment in fragments if fragment.attempt == attempt and fragment.rank == 0]
    first = next((fragment.origin.step for fragment in own if fragment.origin), 0)
    points = sorted(
        (point.time, point.step) for fragment in own for point in fragment.points if _counts(point.values)
    )
    return measured_rates.speed(points, began, first)


def _counts(values: Mapping[str, float]) -> bool:
    """Whether a point is of the training: usage of the machine is measured beside it."""
    return any(not name.startswith("system/") for name in values)
