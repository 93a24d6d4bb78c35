"""The launch of a simulated fleet while zones are out of machines: asks the real decision each time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from hostler.backends.capacity import OUT, Filling, MachineGroup, Move, decide
from hostler.backends.cloud import GiveUp, Ready
from hostler.frozen import dataclass
from hostler.simulate.machine import SimulatedMachine
from hostler.simulate.scene import Scene


@dataclass(frozen=True)
class LaunchLook:
    """Result of a look at a launch: watching ends, it is given up, or machines are sought elsewhere."""

    over: bool = False
    given_up: bool = False
    moved: Sequence[tuple[SimulatedMachine, MachineGroup]] = ()


class Launching:
    LOOK = 1.0  # seconds between two looks

    def __init__(self, scene: Scene) -> None:
        self._timing = scene.timing
        self._active, self._spare = list(scene.groups), list(scene.spare)
        self._left: list[MachineGroup] = []
        self._since: float | None = None
        self._over = False
        self.why = ""  # it was given up

    def begins(self, now: float) -> bool:
        """Whether this is the first machine that does not come, in a launch that somebody watches."""
        first = self._since is None and not self._over and len(self._active[0].zones) > 0
        if first:
            self._since = now
        return first

    def look(self, now: float, vms: Sequence[SimulatedMachine]) -> LaunchLook:
        waited = now - (self._since or 0.0)
        view = [self._filling(group, vms) for group in self._active]
        found = decide(
            view,
            self._spare,
            waited=waited,
            patience=self._timing.machines,
            settled=self._timing.stockout,
            left=self._left,
        )
        if isinstance(found, Move):
            return self._move(found, now, vms)
        if isinstance(found, GiveUp):
            self.why = found.why
            return LaunchLook(given_up=True)
        self._over = isinstance(found, Ready)
        return LaunchLook(over=self._over)

    def _filling(self, group: MachineGroup, vms: Sequence[SimulatedMachine]) -> Filling:
        own = [vm for vm in vms if _place(vm.group) == _place(group)]
        running = sum(vm.on for vm in own)
        return Filling(group, len(own), running, () if running == len(own) else (OUT,))

    def _move(self, found: Move, now: float, vms: Sequence[SimulatedMachine]) -> LaunchLook:
        (into, _), *out = found.sizes
        self._active += [] if into in self._active else [into]
        self._left += [group for group, _ in out]
        self._spare = [group for group in self._spare if group != into]
        self._since = now
        places = {_place(group) for group, _ in out}
        return LaunchLook(
            moved=[(vm, replace(into)) for vm in vms if not vm.on and _place(vm.group) in places]
        )


def _place(group: MachineGroup) -> tuple[str, str]:
    return group.region, group.name
