"""The worker: looks for runs until it may leave.

One thread looks for work, one beats, one carries each run out (`held_runs.py`). The worker leaves when
nothing is left for it (exit 0), or gives everything back when it is told to go.
"""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Callable, Iterable
from typing import Any

from hostler import env
from hostler.errors import StoreError
from hostler.frozen import dataclass
from hostler.records.run import heartbeats
from hostler.records.run.log import CAP
from hostler.records.sweep.rungs import RungReaders
from hostler.spec.job import Job, Resources
from hostler.spec.units import show_duration
from hostler.worker.claim.claimant import Claimant, Scope
from hostler.worker.claim.finder import Finder, Found
from hostler.worker.claim.leave import LeaveView, leave
from hostler.worker.claim.open_runs import needed
from hostler.worker.claim.room import Room
from hostler.worker.claim.session_watch import SessionWatch
from hostler.worker.claim.slots import Offer, Placement
from hostler.worker.growth import Enlarge, Grow, Growth, no_larger
from hostler.worker.held_runs import HeldRuns
from hostler.worker.machine import Machine
from hostler.worker.machine_fate import Ended
from hostler.worker.pulse import Pulse
from hostler.worker.run import dead_attempt, leftovers, run_folders
from hostler.worker.run.conclude import LEAVING, PREEMPTED, STORELESS

REST = 9  # times what a look took, until the next
CONCLUDING = 4  # runs whose process is gone and whose end is being written; more, and no new one is taken


@dataclass(frozen=True)
class WorkerTerms:
    """How this worker was started."""

    only: tuple[str, ...] = ()  # sweeps it serves; none: all
    section: int = 0  # of these sweeps; 0: all
    dead: tuple[str, ...] = ()  # sessions its parent has seen die
    runs: int | None = None  # leave after so many have ended here, retries included
    took: Callable[[str], None] = lambda run: None  # told of each run that is taken
    restarts: bool = False  # its engine brings a lost worker back
    waits_free: bool = True  # waiting costs nobody anything
    time_left: Callable[[], float] = lambda: math.inf  # seconds until its platform or its deadline ends it
    fleet: str = ""  # fleet/number of the launch it is a part of
    job: str = ""  # by which its platform can be asked later how it ended
    fate: Callable[[str], str] = lambda job: ""  # asks that of another worker's job
    serves: Callable[[], Iterable[str]] | None = None  # the sweeps of that launch, asked at every look
    grow: Grow = lambda workers, most: None  # asks its platform for more workers of its launch
    enlarge: Enlarge = no_larger  # asks its platform for one with a larger GPU
    close: Callable[[], None] = lambda: None  # the launch gets no more sweeps: told before a last look


class Worker:
    def __init__(self, machine: Machine, room: Room, terms: WorkerTerms) -> None:
        self._m, self._room, self._terms = machine, room, terms
        rungs = RungReaders(machine.store, machine.say)
        facts: dict[str, Any] = {"host": env.host(), "pid": os.getpid(), "restarts": terms.restarts}
        facts |= {"fleet": terms.fleet} if terms.fleet else {}
        facts |= {"job": terms.job} if terms.job else {}
        claimant = Claimant(machine.session, facts, frozenset(terms.dead), terms.fate)
        self._watch = SessionWatch(machine.store, claimant, machine.timing, machine.clock)
        self._finder = Finder(
            machine.store,
            claimant,
            machine.timing,
            machine.clock,
            Scope(frozenset(terms.only), terms.section, terms.serves),
            say=machine.say,
            rungs=rungs,
            lost=self._deliver_left,
            watch=self._watch,
            gpus=bool(room.offer.gpus),
        )
        only = [*terms.only, *(terms.serves() if terms.serves else ())]
        shown = {
            **facts,
            "only": only,
            "unfit": room.never,
            "room": _room(room.offer),
        }  # so that readers know which sweeps somebody serves
        self._pulse = Pulse(
            machine.store,
            machine.session,
            machine.timing,
            shown,
            machine.clock,
            machine.interest,
            self._watch,
        )
        self._wake = threading.Event()
        self._growth = Growth(machine, terms.fleet, terms.grow, terms.enlarge)
        self._runs = HeldRuns(
            machine, room, terms, self._finder, self._pulse, self._growth, rungs, self._wake.set
        )
        self._left: Found | None = None  # what it saw when it left because nothing is left for it
        self._alone = False  # nor for any other worker of its launch, which is closed
        self._busy_at = machine.clock()
        self._stays_since: float | None = None  # when it could have left, but for a holder that misses beats
        self._rests_until = -math.inf  # no look before that, unless a place becomes free

    def tell(self, reason: str) -> None:
        """Stop what runs here, saving it, give it back, and leave. Safe in a signal handler."""
        self._runs.stop(reason)  # at once: the thread that looks may wait for the store
        self._wake.set()

    @property
    def ended(self) -> Ended:
        """How it ended, for whoever decides about its machine."""
        return Ended(self._runs.told, self._runs.refused, self._left is not None, self._alone)

    def fellows(self) -> int:
        """How many runs other workers of its launch hold now; 0 where the store does not tell."""
        try:
            found = self._finder.find(lambda ask: False, lambda ask: False, whole=True, mine=[])
        except StoreError:
            return 0
        return found.fellows

    def used(self) -> float:
        """Cost of the runs carried out here so far; the rest of its price is idle."""
        return self._runs.used

    def run(self) -> int:
        self._deliver_left()
        run_folders.begin(self._m.cache, self._m.session, self._m.store.url)
        self._pulse.start()
        try:
            self._take_runs()
            if self._runs.told in (PREEMPTED, LEAVING) and self._runs.running:
                return 75
            return int(self._runs.refused or self._runs.told == STORELESS)
        finally:
            self._runs.drain()
            if self._m.warm:
                self._m.warm.close()
            self._pulse.stop()
            self._close_sweeps()
            self._silence()
            self._room.close()
            self._m.remover.finish()
            leftovers.close()
            run_folders.end(self._m.cache, self._m.session)

    def _deliver_left(self, session: str = "") -> None:
        """Deliver what dead workers of this machine left, before their runs are claimed."""
        machine = self._m
        run_folders.remove_abandoned(
            machine.cache, machine.store.url, lambda left: dead_attempt.deliver(machine, left), session
        )

    def _take_runs(self) -> None:
        wait = self._m.timing.wait_min
        while self._runs.told is None:
            if not self._pulse.beats:
                raise RuntimeError("the heartbeat has stopped: this worker may no longer hold runs")
            if self._pulse.lost:
                self._give_up(self._pulse.lost)
                return
            self._runs.measure()
            self._reap()
            self._runs.keep_deadlines()
            if self._runs.spent and not self._runs.running:
                if not self._takes_over():
                    return
                continue
            found = self._look_unless_resting()
            if found and found.outgrown:  # whoever asked for a larger machine may be gone
                self._growth.outgrew(*found.outgrown)
            if found and (found.taken or found.joined):
                self._look_at_own_sweeps(set())
                wait, self._rests_until = self._m.timing.wait_min, -math.inf
                continue
            if found and self._may_leave(found) and self._is_last_look(found):
                return
            self._look_at_own_sweeps(self._finder.open_sweeps() if found else set())
            busy = found is None and bool(self._runs.running)
            self._wait(self._m.timing.poll if busy else self._until_due(wait))
            wait = self._m.timing.wait_min if busy else min(wait * 1.5, self._m.timing.wait_max)

    def _look_at_own_sweeps(self, still_open: set[str]) -> None:
        """Finish those that are over while the worker stays. One that leaves does so by what it saw last."""
        running = {execution.attempt.key.sweep for execution in self._runs.running}
        self._runs.own_sweeps.look(running, still_open)

    def _look_unless_resting(self) -> Found | None:
        """While runs are here and nothing is left to take, looks take a tenth of the time: a store of many
        runs is long to list, and whoever lists it keeps those who save from working."""
        begun = self._m.clock()
        if self._runs.running and begun < self._rests_until:
            return None
        found = self._look()
        now = self._m.clock()
        self._rests_until = now + min(REST * (now - begun), self._m.timing.wait_max)
        return found

    def _give_up(self, error: StoreError) -> None:
        """Save running runs on this machine and leave them to other workers, once the store is back."""
        silent = show_duration(round(self._m.clock() - self._pulse.reached))
        self._m.say(f"the store has not answered for {silent}: this worker leaves: {error}")
        self.tell(STORELESS)

    def _is_last_look(self, before: Found) -> bool:
        """Before it leaves: what had ended may have been reopened since, or more been submitted. A launch of
        which nobody has anything is closed first: what was submitted in time is seen now."""
        closes = not before.fellows
        if closes and before.outgrown and self._is_replaced():
            return True
        try:
            if closes:
                self._terms.close()
        except StoreError as error:
            self._m.say(str(error))
            return False
        found = self._look(whole=True)
        if not found or found.taken or found.joined or not self._may_leave(found):
            return False
        self._left, self._alone = found, closes and not found.fellows
        self._m.say(_why(found, self._room.never))
        return True

    def _is_replaced(self) -> bool:
        """Whether a machine with a larger GPU comes for the runs that are too large here, where the launch
        has no money for both at once. It is open still, and this machine leaves it."""
        found = self._look(whole=True)
        if not found or found.taken or found.joined or not found.outgrown or not self._may_leave(found):
            return False
        if not self._growth.replaces(*found.outgrown):
            return False
        self._left = found
        return True

    def _takes_over(self) -> bool:
        """Whether a worker that has had its number of runs stays: it has taken a lost one, or waits for a
        holder that misses beats, for a lease at most."""
        lease = self._m.timing.lease
        needed = self._watch.lost or self._watch.silent
        if self._runs.refused or not needed or self._stayed >= lease or self._terms.time_left() < 2 * lease:
            return False
        found = self._look(lost=True)
        if found is None or not (found.taken or found.silent):
            return False
        if not found.taken:
            self._wait(self._until_due(self._m.timing.wait_max))
        return True

    @property
    def _stayed(self) -> float:
        """Seconds for which it has stayed for holders that miss beats, instead of leaving."""
        if self._stays_since is None:
            self._stays_since = self._m.clock()
        return self._m.clock() - self._stays_since

    def _until_due(self, wait: float) -> float:
        """Wait no longer than until the next silent worker counts as lost."""
        return min(wait, max(self._watch.due, self._m.timing.wait_min))

    def _look(self, *, whole: bool = False, lost: bool = False) -> Found | None:
        """Look for work, or for `lost` runs alone; None if this machine is full, or the store does not
        answer."""
        if self._room.full or self._runs.concluding >= CONCLUDING or (self._runs.spent and not lost):
            return None
        try:
            with self._room.reserved(self._m.say) as offer:
                return self._find(offer, whole=whole, lost=lost)
        except StoreError as error:
            self._m.say(str(error))
            return None

    def _find(self, offer: Offer, *, whole: bool, lost: bool) -> Found:
        places: dict[tuple[str, Resources], Placement] = {}  # as found: memory may become less meanwhile

        def fits(job: Job) -> bool:
            place = self._room.find(offer, job)
            if isinstance(place, Placement):
                places[job.name, job.resources] = place
            return isinstance(place, Placement)

        found = self._finder.find(
            fits,
            self._room.can_ever,
            whole=whole,
            lost=lost,
            mine=[execution.attempt.key.run for execution in self._runs.running],
        )
        if found.taken:
            job = found.taken.job
            larger = needed(job, found.taken.attempt.state).resources
            self._runs.begin(found.taken, places[job.name, larger])
        if found.joined:
            placement = places[found.joined.job.name, found.joined.job.resources]
            self._runs.join(found.joined, placement)
        if not found.taken and (found.joined or not self._runs.concluding):  # ends make room in their sweep
            self._runs.nothing_begins()
        return found

    def _reap(self) -> None:
        reaped = self._runs.reap()
        if reaped.over:
            self._busy_at, self._stays_since = self._m.clock(), None
        if reaped.freed:
            self._rests_until = -math.inf

    def _may_leave(self, found: Found) -> bool:
        view = LeaveView(
            busy=len(self._runs.running),
            takeable=found.takeable,
            becoming=found.becoming + len(found.waiting) + (found.unfit if self._growth.awaits else 0),
            held=found.held,
            unheld=found.unheld,
            idle_for=self._m.clock() - self._busy_at,
            waits_free=self._terms.waits_free,
            silent=found.silent,
            stayed=self._stayed if found.silent else 0.0,
            gangs=found.gangs,
        )
        timing = self._m.timing
        return leave(view, timing.idle, timing.lease, missed=2 * timing.lease + timing.grace)

    def _wait(self, seconds: float) -> None:
        """An end makes room: look again at once."""
        if self._m.warm and not self._runs.running:
            self._m.warm.tidy()
        self._wake.wait(min(seconds, self._m.timing.poll) if self._runs.running else seconds)
        self._wake.clear()

    def _close_sweeps(self) -> None:
        """Finish sweeps of this worker that are over. A worker that has to go leaves it to others."""
        if self._runs.told in (None, CAP):
            seen = self._finder if self._left else None
            self._runs.own_sweeps.finish(capped=self._runs.told == CAP, seen=seen)

    def _silence(self) -> None:
        try:
            heartbeats.silence(self._m.store, self._m.session, *{*self._terms.dead, *self._watch.outlived})
        except StoreError:
            pass  # it will be seen standing still


def _why(found: Found, never: Iterable[str]) -> str:
    remaining = [f"{found.unfit} do not fit this machine: {', '.join(never)}"] if found.unfit else []
    remaining += [f"{found.paused} paused"] if found.paused else []
    remaining += [f"{found.held} held by others"] if found.held else []
    remaining += [f"halted: {', '.join(found.halted)}"] if found.halted else []
    remaining += [f"written by a newer hostler: {', '.join(found.newer)}"] if found.newer else []
    return "no run is left for this worker" + (f" ({'; '.join(remaining)})" if remaining else "")


def _room(offer: Offer) -> dict[str, Any]:
    """What this machine has for runs, so that readers can show how much of it is used."""
    found = {"cpus": offer.cpus, "memory": offer.memory, "gpus": len(offer.gpus)}
    gpu_memory = sum(device.memory for device in offer.gpus)
    return {**found, "gpu_memory": gpu_memory, "slots": offer.slots}
