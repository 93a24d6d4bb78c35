"""A place in a simulated fleet, and the machine that is in it now."""

from __future__ import annotations

from hostler.backends.capacity import MachineGroup
from hostler.simulate.trace import MachineLoss


class SimulatedMachine:
    __slots__ = (
        *("born", "ended", "group", "holds", "idle_since", "life", "loss", "number", "on", "seeks"),
        *("left", "watches_since", "zone"),
    )

    def __init__(self, number: int, group: MachineGroup) -> None:
        self.number, self.group = number, group
        self.life = 0  # of which machine an event is
        self.on = self.seeks = False  # it costs; it looks for work
        self.left = False  # for good
        self.ended = 0  # runs, on this machine
        self.born = self.idle_since = self.watches_since = 0.0
        self.zone = ""
        self.holds: list[int] = []
        self.loss: MachineLoss | None = None
