"""The runs of a simulated sweep: waiting or lost, and the work each has left.

What an attempt's end counts against, and when a run is not tried again, are the worker's own decisions. Those
that somebody has had before go first, as for every worker.
"""

from __future__ import annotations

import random
from array import array
from collections import deque
from dataclasses import dataclass
from math import exp

from hostler.records.run.state import Tally, count
from hostler.simulate.scene import Scene
from hostler.worker.run.conclude import PREEMPTED, exhausted


@dataclass
class LostRun:
    """A run whose machine vanished at `at`, as long as nobody has missed it."""

    run: int
    at: float
    progress: bool


class Waiting:
    def __init__(self, scene: Scene, chance: random.Random) -> None:
        self._job, self._every, self._save = scene.job, scene.every, scene.save
        draw, factor = scene.length.draw, exp(chance.gauss(0.0, scene.doubt))
        self._left = array("d", (factor * draw(chance) for _ in range(scene.runs)))  # seconds of work
        self._began = array("d", bytes(8 * scene.runs))  # of the newest attempt
        self._spent = array("d", bytes(8 * scene.runs))  # seconds of attempts that are over
        self._slow_from, self._slow = scene.slower
        self._slowed: set[int] = set()
        self._attempts = array("l", bytes(array("l").itemsize * scene.runs))
        self._tallies: dict[int, Tally] = {}
        self._again: deque[int] = deque()
        self._fresh, self._runs = 0, scene.runs
        self.lost: dict[int, LostRun] = {}  # by run, the first that was lost first
        self._of_place: dict[int, list[int]] = {}  # lost runs by the place of the machine that had them
        self.repeated = 0.0  # seconds of work that were done twice
        self.failed = 0

    @property
    def takeable(self) -> int:
        return len(self._again) + self._runs - self._fresh

    def take(self) -> int:
        """The next one; who asks has looked at `takeable`."""
        if self._again:
            return self._again.popleft()
        self._fresh += 1
        return self._fresh - 1

    def begin(self, run: int, now: float) -> tuple[float, int]:
        """The time at which the run will end if undisturbed, and the attempt's number."""
        self._attempts[run] += 1
        now += self._save if self._attempts[run] > 1 else 0.0  # it goes on from a checkpoint
        self._began[run] = now
        remaining = self._left[run]
        if self._slow != 1.0 and now >= self._slow_from and run not in self._slowed:
            self._slowed.add(run)
            remaining = self._left[run] = remaining * self._slow
        return now + remaining + self._save * ((remaining - 1e-9) // self._every), self._attempts[run]

    def attempt(self, run: int) -> int:
        return self._attempts[run]

    def took(self, run: int, now: float) -> float:
        """Seconds of all attempts of a run that ends now."""
        return self._spent[run] + max(0.0, now - self._began[run])

    def stop(self, run: int, now: float) -> None:
        """It saved and was given back, because its machine goes."""
        self._spent[run] += max(0.0, now - self._began[run])
        kept, part = self._kept(run, now)
        self._left[run] -= kept + part
        self._attempts[run] += 1
        if run in self._tallies:
            facts = {"why": PREEMPTED, "progress": kept + part > 0}
            self._tallies[run] = count(self._tallies[run], facts)

    def cut(self, run: int, now: float, place: int) -> None:
        """The machine in this place vanished: its work since the last checkpoint is to be done again."""
        self._spent[run] += max(0.0, now - self._began[run])
        kept, part = self._kept(run, now)
        self._left[run] -= kept
        self.repeated += part
        self._attempts[run] += 1
        self.lost[run] = LostRun(run, now, kept > 0)
        self._of_place.setdefault(place, []).append(run)

    def put_back(self, run: int) -> None:
        self._again.append(run)

    def missed(self, place: int, since: float, now: float, lease: float) -> int | None:
        """A run that the worker in this place, who watches since then, knows to be lost, and takes; None if
        there is none. Whoever has the place of its worker knows at once. Of those that may not be tried again
        it notes the end."""
        while (run := self._missed(place, since + lease, now, lease)) is not None:
            lost_run = self.lost.pop(run)
            facts = {"why": "lost", "counts": "lost", "progress": lost_run.progress}
            tally = count(self._tallies.get(lost_run.run, Tally()), facts)
            if not exhausted(tally, self._job):
                self._tallies[lost_run.run] = tally
                return lost_run.run
            self.failed += 1
        return None

    def _missed(self, place: int, watched: float, now: float, lease: float) -> int | None:
        own = self._of_place.get(place, [])
        while own:
            if (run := own.pop()) in self.lost:
                return run
        first = next(iter(self.lost.values()), None)
        return first.run if first and max(first.at + lease, watched) <= now + 1e-6 else None

    def _kept(self, run: int, now: float) -> tuple[float, float]:
        """Seconds of work in checkpoints, and since the last of them."""
        spent = now - self._began[run]
        if spent <= 0:
            return 0.0, 0.0
        saves = int(spent // (self._every + self._save))
        part = min(spent - saves * (self._every + self._save), self._every)
        return min(saves * self._every, self._left[run]), min(part, self._left[run])
