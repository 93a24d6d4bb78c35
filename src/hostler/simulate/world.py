"""Simulates a fleet and a sweep on a virtual clock: machines come, work, are lost, leave, and cost.

Whether a worker may leave, what a lost attempt counts, when a launch must save, where machines are asked for
and when a launch is given up are the functions that decide it for real. Times are seconds since the launch.
"""

from __future__ import annotations

import random
from functools import partial
from itertools import islice

from hostler.records.sweep.target import TargetView, wanted
from hostler.simulate import stock
from hostler.simulate.agenda import Agenda
from hostler.simulate.launch import Launching
from hostler.simulate.machine import SimulatedMachine
from hostler.simulate.outcome import SimulationOutcome
from hostler.simulate.scene import Scene
from hostler.simulate.trace import MachineLoss
from hostler.simulate.waiting import Waiting
from hostler.simulate.weather import Weather
from hostler.worker.claim.leave import LeaveView, leave
from hostler.worker.launch_membership import lead
from hostler.worker.machine_fate import CLOSE, Ended, fate
from hostler.worker.main import NOTICE

AGAIN = 10.0  # seconds after which a group asks again for what it did not get
ENDLESS = 1000  # losses for each run that could have ended meanwhile: it never ends
YEARS = 20 * 365 * 86400.0


class World:
    def __init__(self, scene: Scene, weather: Weather, seed: int) -> None:
        self._scene, self._weather = scene, weather
        self._chance = random.Random(seed)
        self._waiting = Waiting(scene, self._chance)
        self._agenda = Agenda()
        self._vms: list[SimulatedMachine] = []
        self._seekers: dict[int, SimulatedMachine] = {}
        self._running = self._done = self._losses = self._cut = self._there = 0
        self._cost = self._machine_seconds = self._last_end = self._gone = 0.0
        self._over = self._capped = self._endless = False
        self._held_up = Launching(scene)
        self._took: list[float] = []  # seconds of runs that have ended

    def run(self) -> SimulationOutcome:
        for group in self._scene.groups:
            self._vms += [SimulatedMachine(len(self._vms) + n, group) for n in range(group.size)]
        for vm in self._vms:
            self._agenda.at(self._weather.comes(vm.number), self._come, vm)
        if self._scene.lasts is not None:
            early = lead(self._scene.lasts, self._scene.timing)
            self._agenda.surely(self._scene.lasts - early, self._cap, self._vms[0])
        while not self._over and self._agenda.step():
            if self._now > YEARS:
                self._over = self._endless = True
        return self._outcome()

    @property
    def _now(self) -> float:
        return self._agenda.now

    # what happens to machines

    def _come(self, vm: SimulatedMachine) -> None:
        """The group asks for a machine in the first of its zones that has one."""
        if vm.on or self._capped:
            return
        stands_in = vm.group.spot != self._scene.groups[0].spot  # on demand, where spot is out
        zones, windows = vm.group.zones, {} if stands_in else self._weather.windows
        zone = next((one for one in zones if not stock.is_out(windows, one, self._now)), None)
        if zone is None:
            back = stock.back_at(windows, zones, self._now)
            if back < YEARS:
                self._agenda.at(back + AGAIN * self._chance.random(), self._come, vm)
            if vm.life == 0 and self._held_up.begins(self._now):
                self._agenda.surely(self._now, self._watch_launch, self._vms[0])
            return
        vm.on, vm.born, vm.zone, vm.ended = True, self._now, zone, 0
        vm.life += 1
        self._there += 1
        boots = self._weather.boots(vm.number)
        self._foresee(vm)
        if vm.loss is None or self._now + boots < vm.loss.at:
            self._agenda.after(boots, self._begin, vm)

    def _foresee(self, vm: SimulatedMachine) -> None:
        vm.loss = loss = self._weather.loss(vm.number, self._now, spot=vm.group.spot)
        limit = self._scene.limit
        if limit is not None and (loss is None or loss.at > self._now + limit):
            told = self._now + limit - min(NOTICE, limit / 4)
            vm.loss = loss = MachineLoss(vm.number, told, self._now + limit)
        if loss is None:
            return
        if loss.notice and loss.gone - loss.at >= self._scene.save:
            self._agenda.at(max(loss.at, self._now), self._tell, vm)
        self._agenda.at(loss.gone, self._lose, vm)

    def _tell(self, vm: SimulatedMachine) -> None:
        """It is about to go: what runs saves, and is given back."""
        self._rest(vm)
        released = self._now + self._scene.save
        for run in vm.holds:
            self._waiting.stop(run, self._now)
            self._agenda.surely(released, partial(self._put_back, run), vm)
        self._running -= len(vm.holds)
        vm.holds.clear()

    def _lose(self, vm: SimulatedMachine) -> None:
        """It is off, with all that it held; its group makes it anew."""
        self._losses += 1
        self._cut += len(vm.holds)
        for run in vm.holds:
            self._waiting.cut(run, self._now, vm.number)
        lost = len(vm.holds)
        self._running -= lost
        self._off(vm, self._now)
        for machine in list(islice(self._seekers.values(), lost)):
            self._agenda.after(self._scene.timing.lease, self._look, machine)
        if self._losses > ENDLESS * (self._done + len(self._vms)):
            self._over = self._endless = True
        self._agenda.after(self._weather.comes(vm.number), self._come, vm)

    def _off(self, vm: SimulatedMachine, when: float) -> None:
        self._rest(vm)
        vm.holds.clear()
        seconds = when - vm.born
        self._machine_seconds += seconds
        self._cost += self._scene.prices.get((vm.zone, vm.group.spot), 0.0) * seconds / 3600
        self._gone = max(self._gone, when)
        vm.on = False
        vm.life += 1
        self._there -= 1

    def _watch_launch(self, vm: SimulatedMachine) -> None:
        """Groups that get nothing: the launch moves to others, or is given up."""
        look = self._held_up.look(self._now, self._vms)
        if look.over:
            return
        if look.given_up:
            self._over = True
            return
        for machine, group in look.moved:
            machine.group = group
            machine.life += 1
            self._agenda.after(self._weather.comes(machine.number), self._come, machine)
        self._agenda.surely(self._now + Launching.LOOK, self._watch_launch, vm)

    def _cap(self, vm: SimulatedMachine) -> None:
        """Time or money is over: all save, and the launch goes."""
        if self._capped:
            return
        self._capped = True
        for machine in self._vms:
            if machine.on:
                for run in machine.holds:
                    self._waiting.stop(run, self._now)
                gone = self._now + self._scene.save + self._weather.parts()
                self._off(machine, min(gone, self._scene.lasts or gone))  # its platform waits for nobody
        self._over = True

    # what workers do

    def _begin(self, vm: SimulatedMachine) -> None:
        vm.seeks = True
        vm.idle_since = vm.watches_since = self._now
        self._seek(vm)

    def _seek(self, vm: SimulatedMachine) -> None:
        """Take what there is; who has nothing then looks whether to leave."""
        waiting = self._waiting
        while len(vm.holds) < self._room(vm) and self._may_start:
            run = self._missed(vm)
            if run is None and not waiting.takeable:
                break
            self._take(vm, waiting.take() if run is None else run)
        if len(vm.holds) >= self._room(vm):
            self._seekers.pop(vm.number, None)
            return
        if vm.number not in self._seekers:
            self._seekers[vm.number] = vm
            vm.idle_since = self._now
        if not vm.holds:
            self._look(vm)

    def _missed(self, vm: SimulatedMachine) -> int | None:
        """A run that this worker knows to be lost: it watches while it works, too."""
        lost, lease = self._waiting.lost, self._scene.timing.lease
        return self._waiting.missed(vm.number, vm.watches_since, self._now, lease) if lost else None

    def _room(self, vm: SimulatedMachine) -> int:
        """The number of runs a machine may hold, up to the number it may still end."""
        seats, each = self._scene.seats, self._scene.each
        return seats if each is None else min(seats, each - vm.ended)

    @property
    def _may_start(self) -> bool:
        parallel = self._scene.job.parallel
        return parallel is None or self._running < parallel

    def _take(self, vm: SimulatedMachine, run: int) -> None:
        ends, attempt = self._waiting.begin(run, self._now + self._scene.gap.draw(self._chance))
        vm.holds.append(run)
        self._running += 1
        if not self._waiting.takeable and self._scene.job.parallel is not None:
            self._tell_idle()
        if vm.loss is None or ends <= vm.loss.gone:
            self._agenda.at(ends, partial(self._end, run, attempt), vm)

    def _end(self, run: int, attempt: int, vm: SimulatedMachine) -> None:
        if self._waiting.attempt(run) != attempt:
            return
        vm.holds.remove(run)
        self._running -= 1
        self._done += 1
        self._last_end = self._now
        vm.ended += 1
        if self._scene.each is not None and vm.ended >= self._scene.each:
            self._hand_over(vm)
        else:
            self._seek(vm)
        if self._scene.job.parallel is not None and self._waiting.takeable:
            self._wake()
        self._took.append(self._waiting.took(run, self._now))
        self._grow()

    def _grow(self) -> None:
        """The worker that closes a run looks whether the sweep is late, and asks for more machines."""
        target = self._scene.target
        if target is None or self._capped or not self._open:
            return
        coming = sum(not vm.left for vm in self._vms)
        target_view = TargetView(target.by - self._now, self._open, coming, self._took)
        for _ in range(wanted(target, target_view) - coming):
            vm = SimulatedMachine(len(self._vms), self._scene.groups[0])
            self._vms.append(vm)
            self._agenda.after(self._weather.comes(vm.number), self._come, vm)

    def _hand_over(self, vm: SimulatedMachine) -> None:
        """It has had its number of runs: the next task of its queue takes its place, if there is one."""
        self._rest(vm)
        if not vm.holds:
            self._off(vm, self._now + self._weather.parts())
            if self._scene.replaced and self._open > self._there:
                self._agenda.after(self._weather.comes(vm.number), self._come, vm)

    def _put_back(self, run: int, vm: SimulatedMachine) -> None:
        self._waiting.put_back(run)
        self._wake()

    def _tell_idle(self) -> None:
        """Nothing is queued any more: who waited for its turn looks whether to leave."""
        for vm in self._seekers.values():
            if not vm.holds:
                self._agenda.after(self._scene.timing.wait_max * self._chance.random(), self._look, vm)

    def _wake(self) -> None:
        """Wake an idle worker: each looks for work again within a while."""
        if self._seekers:
            vm = next(iter(self._seekers.values()))
            wait = self._scene.timing.wait_max * self._chance.random() / len(self._seekers)
            self._agenda.after(wait, self._seek, vm)

    def _look(self, vm: SimulatedMachine) -> None:
        """A worker with nothing to do: a run that was lost, or its leave, or another look later."""
        if not vm.seeks or vm.holds or vm.number not in self._seekers:
            return
        timing, waiting, since = self._scene.timing, self._waiting, vm.idle_since
        if waiting.takeable and self._may_start:
            self._seek(vm)
            return
        run = self._missed(vm) if self._may_start else None
        if run is not None:
            self._take(vm, run)
            self._seek(vm)
            return
        seen = self._now - since >= timing.beat  # so long it takes to see that the others' hearts beat
        view = LeaveView(
            busy=0,
            takeable=waiting.takeable,
            becoming=0,
            held=self._running if seen else 0,
            unheld=len(waiting.lost) + (0 if seen else self._running),
            idle_for=self._now - since,
            waits_free=self._scene.waits_free,
        )
        if leave(view, timing.idle, timing.lease):
            self._leave(vm)
            return
        self._look_later(vm, seen)

    def _look_later(self, vm: SimulatedMachine, seen: bool) -> None:
        timing, since = self._scene.timing, vm.idle_since
        times = [since + timing.idle]
        times += [] if seen else [since + timing.beat]
        first = next(iter(self._waiting.lost.values()), None)
        times += [max(first.at, vm.watches_since) + timing.lease] if first else []
        later = [number for number in times if number > self._now + 1e-6]
        if not self._waiting.takeable:
            self._agenda.at(min(later, default=self._now + timing.wait_max), self._look, vm)

    def _leave(self, vm: SimulatedMachine) -> None:
        """For good; the last one takes the launch down."""
        if fate(Ended(looked=True, alone=not self._open)) == CLOSE:
            for machine in self._vms:
                if machine.on:
                    self._off(machine, self._now + self._weather.parts())
            self._over = True
            return
        vm.left = True
        self._off(vm, self._now + self._weather.parts())

    @property
    def _open(self) -> int:
        """Runs that have not ended."""
        return self._scene.runs - self._done - self._waiting.failed

    def _rest(self, vm: SimulatedMachine) -> None:
        """It takes no more."""
        vm.seeks = False
        self._seekers.pop(vm.number, None)

    # the end

    def _outcome(self) -> SimulationOutcome:
        for vm in self._vms:
            if vm.on:
                self._off(vm, self._now)
        failed = self._waiting.failed
        return SimulationOutcome(
            seconds=self._gone if self._scene.runs > self._done + failed else self._last_end,
            gone=self._gone,
            cost=self._cost,
            done=self._done,
            failed=failed,
            left=self._scene.runs - self._done - failed,
            losses=self._losses,
            cut=self._cut,
            repeated=self._waiting.repeated,
            machine_seconds=self._machine_seconds,
            endless=self._endless,
            capped=self._capped,
            given_up=self._held_up.why,
        )
