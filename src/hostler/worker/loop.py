"""The worker: takes runs until it may leave.

One thread looks for work, one beats, one carries each run out. It leaves when nothing is left for it
(exit 0), or gives everything back when it is told to go.
"""

from __future__ import annotations

import math
import os
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any

from hostler import env
from hostler.attempt.status import AttemptStatus
from hostler.errors import HostlerError, StoreError
from hostler.frozen import dataclass
from hostler.records.run import heartbeats
from hostler.records.run.log import CAP
from hostler.records.sweep import deadline, failures, sweeps
from hostler.records.sweep.queue import OpenRun
from hostler.records.sweep.rungs import RungReaders
from hostler.spec.job import Job, Resources
from hostler.spec.states import ENDED
from hostler.spec.units import show_duration
from hostler.worker.claim.claimant import Claimant, Scope
from hostler.worker.claim.claimer import Taken
from hostler.worker.claim.finder import Finder, Found
from hostler.worker.claim.leave import LeaveView, leave
from hostler.worker.claim.open_runs import needed
from hostler.worker.claim.room import Room, share
from hostler.worker.claim.session_watch import SessionWatch
from hostler.worker.claim.slots import Offer, Placement
from hostler.worker.gang.leader import Leader
from hostler.worker.gang.member import Member
from hostler.worker.gang.rendezvous import Joined
from hostler.worker.growth import Enlarge, Grow, Growth
from hostler.worker.machine import Machine
from hostler.worker.machine_fate import Ended
from hostler.worker.pulse import Pulse
from hostler.worker.run import dead_attempt, leftovers, run_folders
from hostler.worker.run.conclude import CROWDED, LEAVING, PREEMPTED, STORELESS
from hostler.worker.run.execution import Execution
from hostler.worker.run.kinds import CUDA_MEMORY
from hostler.worker.shared.process import SharedProcess, SharingLimits
from hostler.worker.sweep_finisher import OwnSweeps

REGROUP = 10.0  # seconds for which a run that others shared a process with waits for them
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
    enlarge: Enlarge = lambda size, hourly: ""  # asks its platform for one with a larger GPU
    close: Callable[[], None] = lambda: None  # the launch gets no more sweeps: told before a last look


class Worker:
    def __init__(self, machine: Machine, room: Room, terms: WorkerTerms) -> None:
        self._m, self._room, self._terms = machine, room, terms
        self._rungs = RungReaders(machine.store, machine.say)
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
            rungs=self._rungs,
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
        self._running: list[Execution | Member] = []
        self._gave_back: set[Execution | Member] = set()  # of these, the ones whose place another may have
        self._told: str | None = None  # reason to go at once
        self._wake = threading.Event()
        self._ended = 0
        self._left: Found | None = None  # what it saw when it left because nothing is left for it
        self._alone = False  # nor for any other worker of its launch, which is closed
        self._used = 0.0  # money, by attempts that are over
        self._own_sweeps = OwnSweeps(machine)
        self._growth = Growth(machine, terms.fleet, terms.grow, terms.enlarge)
        self._sharing = SharingLimits()
        self._refused = False  # this machine won't do for a run that others may do
        self._busy_at = machine.clock()
        self._stays_since: float | None = None  # when it could have left, but for a holder that misses beats
        self._unsaid: dict[str, str] = {}  # by sweep: a line for the log of its next run
        self._rests_until = -math.inf  # no look before that, unless a place becomes free
        self._timed = -math.inf  # when deadlines were last looked at

    def tell(self, reason: str) -> None:
        """Stop what runs here, saving it, give it back, and leave. Safe in a signal handler."""
        self._told = self._told or reason
        for execution in list(self._running):  # at once: the thread that looks may wait for the store
            execution.stop(self._told)
        self._wake.set()

    @property
    def ended(self) -> Ended:
        """How it ended, for whoever decides about its machine."""
        return Ended(self._told, self._refused, self._left is not None, self._alone)

    def fellows(self) -> int:
        """How many runs other workers of its launch hold now; 0 where the store does not tell."""
        try:
            found = self._finder.find(lambda ask: False, lambda ask: False, whole=True, mine=[])
        except StoreError:
            return 0
        return found.fellows

    def used(self) -> float:
        """Cost of the runs carried out here so far; the rest of its price is idle."""
        return self._used + sum(execution.cost for execution in list(self._running))

    def run(self) -> int:
        self._deliver_left()
        run_folders.begin(self._m.cache, self._m.session, self._m.store.url)
        self._pulse.start()
        try:
            self._take_runs()
            if self._told in (PREEMPTED, LEAVING) and self._running:
                return 75
            return int(self._refused or self._told == STORELESS)
        finally:
            self._drain()
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
        while self._told is None:
            if not self._pulse.beats:
                raise RuntimeError("the heartbeat has stopped: this worker may no longer hold runs")
            if self._pulse.lost:
                self._give_up(self._pulse.lost)
                return
            self._measure()
            self._reap()
            self._keep_deadlines()
            if self._spent() and not self._running:
                if not self._takes_over():
                    return
                continue
            found = self._look_unless_resting()
            if found and found.outgrown:  # whoever asked for a larger machine may be gone
                self._growth.outgrew(*found.outgrown)
            self._own_sweeps.look({execution.attempt.key.sweep for execution in self._running})
            if found and (found.taken or found.joined):
                wait, self._rests_until = self._m.timing.wait_min, -math.inf
                continue
            if found and self._may_leave(found) and self._is_last_look(found):
                return
            busy = found is None and bool(self._running)
            self._wait(self._m.timing.poll if busy else self._until_due(wait))
            wait = self._m.timing.wait_min if busy else min(wait * 1.5, self._m.timing.wait_max)

    def _look_unless_resting(self) -> Found | None:
        """While runs are here and nothing is left to take, looks take a tenth of the time: a store of many
        runs is long to list, and whoever lists it keeps those who save from working."""
        begun = self._m.clock()
        if self._running and begun < self._rests_until:
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

    def _takes_over(self) -> bool:
        """Whether a worker that has had its number of runs stays: it has taken a lost one, or waits for a
        holder that misses beats, for a lease at most."""
        lease = self._m.timing.lease
        needed = self._watch.lost or self._watch.silent
        if self._refused or not needed or self._stayed >= lease or self._terms.time_left() < 2 * lease:
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
        if self._room.full or len(self._gave_back) >= CONCLUDING or (self._spent() and not lost):
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
            mine=[execution.attempt.key.run for execution in self._running],
        )
        if found.taken:
            job = found.taken.job
            larger = needed(job, found.taken.attempt.state).resources
            placement = places.get((job.name, larger)) or places[job.name, job.resources]
            self._room.take(placement, found.taken.job)
            self._start_all(found.taken, placement)
        if found.joined:
            placement = places[found.joined.job.name, found.joined.job.resources]
            self._room.take(placement, found.joined.job)
            self._join(found.joined, placement)
        return found

    def _start_all(self, taken: Taken, placement: Placement) -> None:
        """A run, and those that share its process and so its place."""
        key = taken.attempt.key
        most = self._sharing.limit(taken.job, key.index, key.run, taken.attempt.state)
        if most < 2:
            self._start(taken, placement, self._rate_of(placement))
            return
        members = [taken, *self._mates(taken)]
        runs = [member.attempt.key.run for member in members]
        folder = run_folders.of_run(self._m.cache, self._m.session, f"shared-{key.run}", taken.attempt.number)
        shared = SharedProcess(runs, folder, self._m.start, self._m.remover.remove_soon, most)
        rate = self._rate_of(placement)
        for one in members:
            self._start(one, placement, rate and rate / len(members), shared)

    def _mates(self, taken: Taken) -> list[Taken]:
        def limit(job: Job, run: OpenRun) -> int:
            left = self._terms.runs - self._ended - len(self._running) if self._terms.runs else None
            most = self._sharing.limit(job, run.key.index, run.key.run, run.state)
            return most if left is None else min(most, left)

        if taken.attempt.state.attempts > 1:
            self._regroup(taken.job.name)
        mine = [*(one.attempt.key.run for one in self._running), taken.attempt.key.run]
        try:
            return self._finder.mates(taken, limit, mine)
        except StoreError as error:
            self._m.say(str(error))
            return []

    def _regroup(self, sweep: str) -> None:
        """Wait for runs whose shared process is gone: given back one by one, they go on together again."""
        until = self._m.clock() + REGROUP
        ours = [one for one in self._running if isinstance(one, Execution) and one.attempt.key.sweep == sweep]
        while (
            any(execution.regroups for execution in ours) and self._m.clock() < until and self._told is None
        ):
            time.sleep(self._m.timing.poll / 4)

    def _start(
        self, taken: Taken, placement: Placement, rate: float | None, shared: SharedProcess | None = None
    ) -> None:
        execution = Execution(
            self._m,
            taken.job,
            taken.attempt,
            placement,
            self._wake.set,
            self._rungs,
            lambda job, status, say: self._leader(job, taken, status, say),
            rate=rate,
            shared=shared,
        )
        if line := self._unsaid.pop(taken.job.name, ""):
            execution.note(line)
        self._m.say(f"{execution.attempt.key.run}: attempt {taken.attempt.state.attempts} starts")
        self._hold(execution)

    def _join(self, joined: Joined, placement: Placement) -> None:
        self._m.say(f"{joined.key.run}: joins as number {joined.slot}")
        self._hold(Member(self._m, joined, placement, self._wake.set, self._rate_of(placement)))

    def _rate_of(self, placement: Placement) -> float | None:
        """Price of this part of the machine for an hour, where it is known."""
        return None if self._m.price is None else self._m.price * share(self._room.offer, placement)

    def _leader(
        self, job: Job, taken: Taken, status: AttemptStatus, say: Callable[[str], None]
    ) -> Leader | None:
        """The leader of a run that takes several processes, here or with other workers."""
        if job.resources.nodes * job.resources.procs_per_node < 2:
            return None
        fits = self._room.can_ever
        return Leader(self._m, job, taken.attempt, status, say, only=self._terms.only, fits=fits)

    def _hold(self, execution: Execution | Member) -> None:
        self._pulse.hold(execution)
        self._running.append(execution)
        execution.start()
        self._terms.took(execution.attempt.key.run)

    def _measured(self) -> list[Execution]:
        return [one for one in self._running if isinstance(one, Execution) and one.peak]

    def _measure(self) -> None:
        """Heed what runs of sweeps with `parallel: auto` use; one of them goes where memory runs out."""
        runs = self._measured()
        lines = self._room.measure((run.job, run.placement, run.peak) for run in runs if run.peak)
        for line in lines:
            self._chosen(line)
        for execution in runs if lines else ():
            execution.charge(self._rate_of(self._room.held(execution.placement, execution.job)))
        going = any(run.stopping for run in runs)
        if len(runs) > 1 and not going and self._room.crowded:
            self._m.say(f"{runs[-1].attempt.key.run}: is stopped, as this machine is nearly out of memory")
            runs[-1].stop(CROWDED)

    def _chosen(self, line: str) -> None:
        self._m.say(line)
        self._unsaid[line.partition(":")[0]] = line

    def _reap(self) -> None:
        for execution in list(self._running):
            over = not execution.is_alive()  # asked once: it may end at any moment
            if (over or execution.vacant) and execution not in self._gave_back:
                self._gave_back.add(execution)
                if not any(self._shares(one, execution) for one in self._running):
                    self._room.give_back(execution.placement)
                    self._rests_until = -math.inf
            if over:
                self._bury(execution)

    def _shares(self, one: Execution | Member, other: Execution | Member) -> bool:
        """Whether this one still needs the other's place."""
        return one is not other and one.placement is other.placement and one not in self._gave_back

    def _bury(self, execution: Execution | Member) -> None:
        self._measure()  # its last peak
        self._own_sweeps.had(execution.attempt.key.sweep)
        self._running.remove(execution)
        self._gave_back.remove(execution)
        self._pulse.drop(execution)
        self._m.say(f"{execution.attempt.key.run}: {execution.outcome or 'the worker failed; see its log'}")
        self._busy_at, self._stays_since = self._m.clock(), None
        if not any(self._shares(one, execution) for one in self._running):  # else it made no room
            self._rests_until = -math.inf
        self._used += execution.cost
        if execution.outcome in ENDED:
            self._growth.ended(execution.attempt.key.sweep)
        self._ended += execution.outcome in (*ENDED, "")  # "": broken here, and counted so as not to go on
        self._refused = self._refused or execution.refused
        if isinstance(execution, Execution) and execution.rejection:
            key = execution.attempt.key
            self._sharing.heed(execution.job, key.index, key.run, execution.rejection)
        if isinstance(execution, Execution) and (line := self._room.strain(execution.job, execution.kind)):
            self._chosen(line)
        if isinstance(execution, Execution) and execution.kind == CUDA_MEMORY:
            self._finder.forget()  # its sweep may have outgrown this machine
            self._growth.outgrew(execution.attempt.key.run, execution.attempt.state.outgrew)
        if execution.outcome == "failed" and isinstance(execution, Execution):
            self._halt_if_repeated(execution.attempt.key.sweep)

    def _keep_deadlines(self) -> None:
        """Save and set aside the runs here of a sweep whose hours are used up."""
        timed = {e.attempt.key.sweep for e in self._running if e.timed}
        if not timed or self._m.clock() - self._timed < self._m.timing.beat:
            return
        self._timed = self._m.clock()
        try:
            store = self._m.store
            over = {n for n in timed if deadline.is_over(store, sweeps.load_spec(store, n)[0])}
        except HostlerError as error:  # the store does not answer, or the sweep is being deleted
            self._m.say(str(error))
            return
        for execution in self._running:
            if execution.attempt.key.sweep in over:
                execution.stop(CAP)

    def _halt_if_repeated(self, sweep: str) -> None:
        try:
            if failures.halt_if_repeated(self._m.store, sweep):
                self._finder.forget()
                self._m.say(f"{sweep}: halted; hostler errors {sweep}")
        except StoreError as error:
            self._m.say(f"{sweep}: {error}")  # the next failure looks again

    def _may_leave(self, found: Found) -> bool:
        view = LeaveView(
            busy=len(self._running),
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

    def _spent(self) -> bool:
        """It takes no more: it has had its number of runs, or its machine won't do."""
        spent = self._terms.runs is not None and self._ended + len(self._running) >= self._terms.runs
        return self._refused or spent

    def _wait(self, seconds: float) -> None:
        """An end makes room: look again at once."""
        if self._m.warm and not self._running:
            self._m.warm.tidy()
        self._wake.wait(min(seconds, self._m.timing.poll) if self._running else seconds)
        self._wake.clear()

    def _drain(self) -> None:
        for execution in self._running:
            execution.stop(self._told or LEAVING)
        for execution in self._running:
            self._own_sweeps.had(execution.attempt.key.sweep)
            execution.join()
            self._m.say(f"{execution.attempt.key.run}: {execution.outcome}")

    def _close_sweeps(self) -> None:
        """Finish sweeps of this worker that are over. A worker that has to go leaves it to others."""
        if self._told in (None, CAP):
            self._own_sweeps.finish(capped=self._told == CAP)

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
