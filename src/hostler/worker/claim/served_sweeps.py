"""The sweeps that a worker may serve now, and their queues.

A sweep that cannot be read, because it is newer than this worker or damaged, is left alone, and that is said
once. Before a claim, a sweep that was last looked at more than a moment ago (`fresh`) is looked at again: an
edit may have dropped the run, or a halt may hold it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

from hostler.errors import DamagedError, MissingError, NewerFormatError
from hostler.records.packs import packed_store
from hostler.records.run import upstream
from hostler.records.sweep import deadline, outgrown_gpus, sweeps
from hostler.records.sweep.queue import OpenRun, Queue
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.store import Store
from hostler.worker.claim.claimant import Scope


@dataclass
class NotServed:
    """Names of sweeps that are not served now, by the reason."""

    halted: list[str] = field(default_factory=list)
    newer: list[str] = field(default_factory=list)  # written by a newer hostler
    waiting: list[str] = field(default_factory=list)  # their runs take from others that are not over


class ServedSweeps:
    def __init__(
        self,
        store: Store,
        scope: Scope,
        timing: Timing,
        clock: Callable[[], float],
        say_once: Callable[[str], None],
        changed: Callable[[str], None],
        *,
        gpus: bool = False,
    ) -> None:
        """`changed` is told of each sweep whose spec is read, for the first time or anew. `gpus`: this
        machine has some, which may be too small for a sweep."""
        self._store, self._scope, self._timing, self._clock = store, scope, timing, clock
        self._say_once, self._changed, self._gpus = say_once, changed, gpus
        self._queues: dict[str, Queue] = {}  # the most urgent first
        self._stamps: dict[str, str] = {}  # of the spec a queue was made from
        self._checked: dict[str, float] = {}  # sweep → when its spec and halts were last looked at
        self._ready: set[str] = set()  # specs whose runs have all that they take from others
        self._by_hand: set[str] = set()  # sweeps of scripts that a person started: never taken here
        self._loaded = -math.inf  # when the sweeps were last asked for

    def __iter__(self) -> Iterator[Queue]:
        return iter(self._queues.values())

    def get(self, name: str) -> Queue | None:
        return self._queues.get(name)

    @property
    def has_gangs(self) -> bool:
        """Whether some of their runs take several workers."""
        return any(queue.job.resources.nodes > 1 for queue in self)

    @property
    def is_current(self) -> bool:
        """Whether no sweep is known to have changed since it was read."""
        return self._loaded > -math.inf

    @property
    def age(self) -> float:
        """Seconds since the sweeps were last asked for."""
        return self._clock() - self._loaded

    def forget(self) -> None:
        """The sweeps have changed: ask for them before the next claim."""
        self._loaded = -math.inf

    def load(self) -> NotServed:
        """Ask for the sweeps that may be served now."""
        self._loaded = self._clock()
        queues: dict[str, Queue] = {}
        served = NotServed()
        for name in self._names():
            if name in self._by_hand:
                continue
            self._checked[name] = self._clock()
            try:
                queue = None if sweeps.halted(self._store, name) else self._queue(name)
                if queue is None or deadline.halt_if_over(self._store, queue.job):
                    served.halted.append(name)
                elif queue.job.by_hand:
                    self._by_hand.add(name)
                elif self._waits(queue.job):
                    served.waiting.append(name)
                else:
                    packed_store.check(self._store, name)
                    queues[name] = queue
            except (MissingError, DamagedError, NewerFormatError) as error:
                if isinstance(error, MissingError) and self._scope.only:
                    raise
                if isinstance(error, NewerFormatError):
                    served.newer.append(name)
                self._say_once(f"{name} is left alone: {error}")
        self._queues = dict(sorted(queues.items(), key=lambda item: -item[1].job.priority))
        return served

    def open_runs(self, *, whole: bool) -> list[tuple[Queue, OpenRun]]:
        """Open runs, those of the most urgent sweeps first. `whole`: ended ones may have been reopened."""
        found: list[tuple[Queue, OpenRun]] = []
        for name, queue in self._queues.items():
            try:
                found += [(queue, run) for run in queue.open(whole=whole, trusting=not whole)]
            except (DamagedError, NewerFormatError) as error:
                self._say_once(f"{name} is left alone: {error}")
            for run, why in queue.damaged.items():
                self._say_once(f"{run} is left alone: {why}")
        return found

    def stands(self, name: str) -> bool:
        """Whether the sweep is as it was when its queue was made, and may be served."""
        if not self.is_current:
            return False
        now = self._clock()
        if now - self._checked[name] < self._timing.fresh:
            return True
        if sweeps.halted(self._store, name) or sweeps.stamp(self._store, name) != self._stamps[name]:
            self.forget()
            return False
        self._checked[name] = now
        return True

    def _names(self) -> list[str]:
        if self._scope.serves is not None:
            return sorted(self._scope.serves())
        return sorted(self._scope.only) if self._scope.only else sweeps.names(self._store)

    def _queue(self, name: str) -> Queue:
        stamp = sweeps.stamp(self._store, name)
        known = self._queues.get(name)
        if known is None or self._stamps.get(name) != stamp:  # a large spec is not read for every look
            job = sweeps.load_spec(self._store, name)[0]
            section = self._scope.section
            outside = job.outside(section) if section else None
            known, self._stamps[name] = Queue(self._store, job, outside), stamp
            self._changed(name)
            if outside is not None and len(outside) == job.count:
                self._say_once(f"{name} has no section {section}")
        known.grow()
        if self._gpus and (size := outgrown_gpus.largest(self._store, name, known.job.source.mark)):
            known.job = replace(known.job, resources=known.job.resources.larger_than(size))
        return known

    def _waits(self, job: Job) -> bool:
        """Whether its runs take from others that are not over; asked until they are."""
        stamp = self._stamps[job.name]
        if stamp in self._ready:
            return False
        what = upstream.waiting_for(self._store, job)
        if what:
            self._say_once(f"{job.name} waits for {what}")
            return True
        self._ready.add(stamp)
        return False
