"""The machines' history in emulated seconds, also as a trace that `hostler simulate` reads.

How long machines were there is the meter's; the diary holds what the meter does not see: launches, words of
preemption, what workers said of themselves, and shortages. The caller holds the world's lock.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hostler.emulators.gce.clock import Clock
from hostler.emulators.gce.meter import Usage
from hostler.simulate.stock import Outage
from hostler.simulate.trace import Leave, MachineLoss, MachineStart, Trace

ASKED, SAID, TAKEN, OUT, BACK = "a group is made", "a worker says", "taken away", "none left", "some again"
WORKING, LEAVING = "working", "leaving"  # what workers say
STATE = "hostler/state"  # where they say it


@dataclass(frozen=True)
class Entry:
    at: float
    kind: str
    name: str = ""  # of a machine, or a zone
    word: str = ""
    notice: bool = False


@dataclass
class Diary:
    clock: Clock
    entries: list[Entry] = field(default_factory=list)

    def note(self, kind: str, name: str = "", word: str = "", *, notice: bool = False) -> None:
        self.entries.append(Entry(self.clock.now(), kind, name, word, notice))


@dataclass(frozen=True)
class Stretch:
    """A life of one machine, as number `vm` of its fleet."""

    vm: int
    name: str
    began: float
    ended: float
    zone: str


def trace(entries: Sequence[Entry], used: Sequence[Usage], scale: float) -> Trace:
    """Times count from the first launch. Pure."""
    stretches = _numbered([usage for usage in used if usage.kind == "machine"])
    known = [
        *(entry.at for entry in entries if entry.kind == ASKED),
        *(stretch.began for stretch in stretches),
    ]
    begins = min(known, default=0.0)
    starts, losses, leaves = list[MachineStart](), list[MachineLoss](), list[Leave]()
    for one in stretches:
        own = [e for e in entries if e.name == one.name and one.began <= e.at <= one.ended]
        works = next((e.at - one.began for e in own if e.word.startswith(WORKING)), None)
        starts.append(MachineStart(one.vm, one.began - begins, works, one.zone))
        taken = next((e for e in own if e.kind == TAKEN), None)
        left = next((e for e in own if e.word.startswith(LEAVING)), None)
        if taken:
            losses.append(MachineLoss(one.vm, taken.at - begins, one.ended - begins, taken.notice))
        elif left:
            leaves.append(Leave(one.vm, left.at - begins, one.ended - begins))
    return Trace(scale, tuple(starts), tuple(losses), tuple(leaves), tuple(_outages(entries, begins)))


def _numbered(used: Sequence[Usage]) -> list[Stretch]:
    """Number the machines: one that returns keeps its number, a new one takes that of a lost one."""
    stretches: list[Stretch] = []
    numbers, until = dict[str, int](), dict[int, float]()
    for one in sorted(used, key=lambda one: one.began):
        free = (n for n in range(len(until) + 1) if until.get(n, -math.inf) <= one.began)
        number = numbers.setdefault(one.name, next(free))
        until[number] = one.began + one.seconds
        stretches.append(Stretch(number, one.name, one.began, until[number], one.zone))
    return stretches


def _outages(entries: Sequence[Entry], begins: float) -> Iterator[Outage]:
    since: dict[str, float] = {}
    for entry in entries:
        if entry.kind == OUT:
            since.setdefault(entry.name, max(0.0, entry.at - begins))
        elif entry.kind == BACK:
            for zone in [entry.name] if entry.name else list(since):
                if zone in since and entry.at > begins:
                    yield Outage(zone, since.pop(zone), entry.at - begins)
                since.pop(zone, None)
    yield from (Outage(zone, at) for zone, at in since.items())
