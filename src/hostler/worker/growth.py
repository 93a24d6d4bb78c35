"""Looks again at a sweep's target after each end: asks the platform for more workers where it is late.

In a thread of its own, one at a time. A platform that a worker cannot ask for more is left alone, and that is
said once. Fewer workers need no decision: one with nothing to do leaves.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Protocol

from hostler.errors import HostlerError
from hostler.records.launch import launches
from hostler.records.launch.launches import Generation
from hostler.records.run import heartbeats
from hostler.records.sweep import sweeps, target
from hostler.records.sweep.ends import EndReader
from hostler.records.sweep.queue import Queue
from hostler.records.sweep.target import Target, TargetView, wanted
from hostler.spec.names import slug
from hostler.spec.states import DONE
from hostler.spec.units import counted, show_duration
from hostler.worker.machine import Machine

# (workers that are wanted, the most there may be) → workers there are then; None: nobody can be asked
Grow = Callable[[int, int], "int | None"]


class Enlarge(Protocol):
    def __call__(self, size: int, hourly: float, *, instead: bool = False) -> str:
        """`Host.enlarge`."""


def no_larger(size: int, hourly: float, *, instead: bool = False) -> str:
    """Stands for a host that nobody can ask."""
    return ""


@dataclass
class Growth:
    machine: Machine
    launch: str  # fleet/number of this worker; '' for one that nobody launched
    grow: Grow  # host's: at least so many workers, at most so many; answers how many there are then
    enlarge: Enlarge = no_larger  # host's: a machine with a larger GPU
    awaits: bool = False  # one is on its way: what this machine is too small for is not left alone
    _due: dict[str, None] = field(default_factory=dict)
    _ends: dict[str, EndReader] = field(default_factory=dict)
    _thread: threading.Thread | None = None
    _mute: bool = False
    _enlarged: float = -math.inf  # when a larger machine was last asked for
    _coming: set[str] = field(default_factory=set)  # machine types that were asked for

    def ended(self, sweep: str) -> None:
        """A run of it is over here: its target is looked at."""
        if self.launch:
            self._due[sweep] = None
            self.look()

    def look(self) -> None:
        if not self._due or (self._thread and self._thread.is_alive()):
            return
        names = list(self._due)
        self._due.clear()
        self._thread = threading.Thread(target=self._look_all, args=(names,), name="growth", daemon=True)
        self._thread.start()

    def _look_all(self, names: list[str]) -> None:
        for name in names:
            try:
                self.check(name)
            except HostlerError as error:
                self.machine.say(f"{name}: {error}")

    def check(self, sweep: str) -> None:
        """Ask for more workers if the sweep is late, and its money allows."""
        store = self.machine.store
        found = target.newest(store, sweep)
        if found is None or found[1].most <= found[1].workers or self._mute:
            return
        number, one = found
        place = launches.named(self.launch)
        if place is None or slug(one.fleet) != place[0]:
            return
        agreed = launches.read(store, *place)
        if agreed is None:
            return
        one = replace(one, most=min(one.most, agreed.workers))  # money is reserved for no more
        remaining = one.by - heartbeats.store_time(store)
        if one.most <= one.workers or remaining <= 0:
            return
        reader = self._ends.setdefault(sweep, EndReader(store, sweep))
        ends = sorted(reader.update().values(), key=lambda end: float(end.get("at") or 0.0))
        spent = [(end.get("total") or end.get("seconds"), end.get("state")) for end in ends]
        took = [float(seconds) for seconds, state in spent if seconds and state == DONE]
        if not target.takes_look(store, sweep, number, len(ends)):
            return
        there = self.grow(0, one.most)
        if there is None:
            self._mute = True
            return
        runs = len(Queue(store, sweeps.load(store, sweep)).open(whole=True))
        target_view = TargetView(remaining, runs, there, took)
        self._act(sweep, one, target_view)

    def outgrew(self, run: str, size: int) -> None:
        """A run needs a larger GPU than this machine has: its launch may get one. Asked once a lease."""
        now = self.machine.clock()
        if not self.launch or not size or now - self._enlarged < self.machine.timing.lease:
            return
        self._enlarged, self.awaits = now, True
        words = (run, size)
        threading.Thread(target=self._enlarge, args=words, name="enlarge", daemon=True).start()

    def replaces(self, run: str, size: int) -> bool:
        """Whether a machine with a larger GPU comes in the place of this one, which leaves at once."""
        try:
            agreed = self._agreed()
            machine = self.enlarge(size, agreed.hourly, instead=True) if agreed and size else ""
        except HostlerError as error:
            self.machine.say(f"{run}: {error}")
            return False
        if machine:
            self.machine.say(f"{run}: needs a larger GPU: {machine} comes in the place of this machine")
        return bool(machine)

    def _agreed(self) -> Generation | None:
        place = launches.named(self.launch)
        return launches.read(self.machine.store, *place) if place else None

    def _enlarge(self, run: str, size: int) -> None:
        machine = ""
        try:
            agreed = self._agreed()
            machine = self.enlarge(size, agreed.hourly) if agreed else ""
            if machine and machine not in self._coming:
                self._coming.add(machine)
                self.machine.say(f"{run}: needs a larger GPU: {machine} is asked for")
        except HostlerError as error:
            self.machine.say(f"{run}: {error}")
        finally:  # or this machine would stay for one that does not come
            self.awaits = bool(machine)

    def _act(self, sweep: str, one: Target, seen: TargetView) -> None:
        count = wanted(one, seen)
        if count <= seen.workers:
            return
        late = show_duration(round(max(0.0, target.finish(one, seen, seen.workers) - seen.left)))
        more = counted(count - seen.workers, "more worker")
        self.machine.say(f"{sweep}: late by about {late}: {more} of at most {one.most} are asked for")
        self.grow(count, one.most)
