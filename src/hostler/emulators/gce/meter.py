"""Meters machines and disks by the emulator's own count, and their cost.

A machine counts from when it is staged to when it is off, a disk from its making to its deletion, whoever
made them and whether or not anything ran there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hostler.emulators.gce.clock import Clock
from hostler.frozen import dataclass

HOUR = 3600.0

Price = Callable[["Usage"], float]


@dataclass(frozen=True)
class Usage:
    """Time that one machine or disk existed, in emulated seconds."""

    kind: str  # machine, disk
    name: str
    zone: str
    type: str  # machine type, or kind of disk
    spot: bool
    accelerators: tuple[tuple[str, int], ...]
    gb: float  # of a disk
    labels: tuple[tuple[str, str], ...]
    began: float
    seconds: float = 0.0


@dataclass(frozen=True)
class Bill:
    lines: tuple[tuple[Usage, float], ...]

    @property
    def total(self) -> float:
        return sum(cost for _, cost in self.lines)

    def of(self, label: str, value: str) -> float:
        return sum(cost for usage, cost in self.lines if (label, value) in usage.labels)


class Meter:
    """The caller holds the world's lock."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._open: dict[tuple[str, str, str], Usage] = {}
        self._closed: list[Usage] = []

    def begin(self, usage: Usage) -> None:
        key = (usage.kind, usage.zone, usage.name)
        if key not in self._open:
            self._open[key] = replace(usage, began=self._clock.now())

    def end(self, kind: str, zone: str, name: str) -> None:
        usage = self._open.pop((kind, zone, name), None)
        if usage:
            self._closed.append(self._until_now(usage))

    def usage(self) -> list[Usage]:
        return [*self._closed, *(self._until_now(one) for one in self._open.values())]

    def _until_now(self, usage: Usage) -> Usage:
        return replace(usage, seconds=self._clock.now() - usage.began)


def bill(used: list[Usage], machine: Price, disk: Price) -> Bill:
    """`machine` and `disk` give dollars an hour of what they are shown."""
    rates = {"machine": machine, "disk": disk}
    return Bill(tuple((usage, rates[usage.kind](usage) * usage.seconds / HOUR) for usage in used))
