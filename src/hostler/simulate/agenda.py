"""Schedules events on a virtual clock that jumps from one to the next.

What is planned for a machine does not happen once another one is in its place.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

from hostler.simulate.machine import SimulatedMachine

Act = Callable[[SimulatedMachine], None]
WHATEVER = -1  # of which machine an event is, if it comes whatever became of that


class Agenda:
    def __init__(self) -> None:
        self.now = 0.0
        self._count = 0  # of two things at one time the first planned is first
        self._heap: list[tuple[float, int, Act, SimulatedMachine, int]] = []

    def at(self, when: float, act: Act, vm: SimulatedMachine) -> None:
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, act, vm, vm.life))

    def after(self, seconds: float, act: Act, vm: SimulatedMachine) -> None:
        self.at(self.now + seconds, act, vm)

    def surely(self, when: float, act: Act, vm: SimulatedMachine) -> None:
        """Act at this time, even if the machine has gone meanwhile."""
        self._count += 1
        heapq.heappush(self._heap, (when, self._count, act, vm, WHATEVER))

    def step(self) -> bool:
        """The next thing; False if there is none."""
        if not self._heap:
            return False
        self.now, _, act, vm, life = heapq.heappop(self._heap)
        if life in (vm.life, WHATEVER):
            act(vm)
        return True
