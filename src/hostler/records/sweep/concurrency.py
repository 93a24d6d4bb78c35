"""Turns, which keep a sweep to at most `parallel` runs at once, on all workers together.

There are so many places. The newest entry of a place, created once, names the attempt that has it; the
place is free again once that attempt's log says it is over, which no clock and no lease is needed for. A run
is claimed first and started only with a turn; who gets none gives the run back. Places beyond `parallel`
(it was larger before) count while they are taken.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from hostler.frozen import dataclass
from hostler.records import layout
from hostler.records.body import PART, WHOLE, checked, decode, encode
from hostler.records.run import log
from hostler.records.run.log import RunKey
from hostler.spec.job import Job
from hostler.store import NotFound, Store

_FIELDS = {"run": PART, "attempt": WHOLE}

KEEP = 2  # entries of a place; older ones are deleted by who takes it


@dataclass(frozen=True)
class Turn:
    """The newest entry of a place."""

    place: int
    n: int
    run: str
    attempt: int


class Turns:
    """The places of sweeps as one worker sees them. What is over stays over, and is not asked about again."""

    def __init__(self, store: Store, rng: random.Random | None = None) -> None:
        self._store, self._rng = store, rng or random.Random()
        self._read: dict[str, Turn] = {}  # by key: entries are immutable
        self._over: set[tuple[str, int]] = set()  # (run, attempt)

    def free(self, job: Job) -> list[tuple[int, int]]:
        """(place, number of its next entry) of the places that a run may have now."""
        newest = self._newest(job.name)
        held = {place for place, turn in newest.items() if self._holds(job.name, turn)}
        room = (job.parallel or 0) - len(held)
        places = [place for place in range(job.parallel or 0) if place not in held]
        return [(p, newest[p].n + 1 if p in newest else 1) for p in places] if room > 0 else []

    def take(self, job: Job, run: str, attempt: int) -> bool:
        """A turn for this attempt; False if there is none."""
        free = self.free(job)
        self._rng.shuffle(free)
        for place, n in free:
            key = layout.turn(job.name, place, n)
            if self._store.put(key, encode({"run": run, "attempt": attempt}), if_absent=True):
                # An old entry may have been deleted since we looked: then ours is not the newest.
                if self._numbers(job.name)[place][-1] == n:
                    self._forget(job.name, place)
                    return True
                self._store.delete(key)
        return False

    def _newest(self, name: str) -> dict[int, Turn]:
        turns = {}
        for place, numbers in self._numbers(name).items():
            turn = self._get(name, place, max(numbers))
            if turn is not None:
                turns[place] = turn
        return turns

    def _numbers(self, name: str) -> dict[int, list[int]]:
        """place → the numbers of its entries, in order; one listing."""
        numbers: dict[int, list[int]] = {}
        for entry in self._store.list(layout.turns(name)):
            if turn := layout.split_turn(entry.key):
                numbers.setdefault(turn[0], []).append(turn[1])
        return numbers

    def _get(self, name: str, place: int, n: int) -> Turn | None:
        key = layout.turn(name, place, n)
        if key not in self._read:
            try:
                record = checked(decode(self._store.get(key).data, key), _FIELDS, key, _FIELDS)
            except NotFound:  # taken back right now
                return None
            self._read[key] = Turn(place, n, record["run"], record["attempt"])
        return self._read[key]

    def _holds(self, name: str, turn: Turn) -> bool:
        mark = (turn.run, turn.attempt)
        if mark not in self._over and is_attempt_closed(self._store, RunKey(name, turn.run), turn.attempt):
            self._over.add(mark)
        return mark not in self._over

    def _forget(self, name: str, place: int) -> None:
        old = self._numbers(name).get(place, [])[:-KEEP]
        keys = [layout.turn(name, place, n) for n in old]
        self._store.delete(*keys)
        for key in keys:
            self._read.pop(key, None)


def is_attempt_closed(store: Store, key: RunKey, attempt: int) -> bool:
    """Whether an attempt has been closed: its log goes on with more than stop requests."""
    k = attempt + 1
    while True:
        at = layout.log_entry(key.sweep, key.run, k)
        try:
            if log.closes(log.parse_entry(store.get(at).data, at)):
                return True
        except NotFound:
            return False
        k += 1


def enrol(store: Store, job: Job, running: Iterable[tuple[str, int]]) -> None:
    """Give places to (run, attempt)s that were started before the sweep had a bound."""
    turns = Turns(store)
    held = {(turn.run, turn.attempt) for turn in turns._newest(job.name).values()}
    unheld = [one for one in running if one not in held]
    place = max([job.parallel or 0, *(p + 1 for p in turns._numbers(job.name))])
    for run, attempt in unheld:
        if not turns.take(job, run, attempt):
            store.put(
                layout.turn(job.name, place, 1), encode({"run": run, "attempt": attempt}), if_absent=True
            )
            place += 1
