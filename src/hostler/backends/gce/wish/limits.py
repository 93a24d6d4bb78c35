"""Limits of Compute Engine's machines: custom types, GPUs beside N1, boot disks. Pure.

One table each, as Google documents them. A series that is not in a table is not judged here: Google is asked.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from hostler.frozen import dataclass

LEAST_DISK = 10  # GiB: no public image with Python is smaller
MOST_DISK = 65_536
GRAIN = 256  # MB of which a custom machine's memory is a multiple
CUSTOM = re.compile(r"(?:([a-z]\w*)-)?custom-(\d+)-(\d+)(-ext)?")


@dataclass(frozen=True)
class Series:
    """Which custom machines there are."""

    cpus: tuple[tuple[int, int], ...]  # (up to so many, in steps of)
    memory: tuple[float, float]  # GiB for each CPU, at least and at most
    one: bool = False  # a single CPU, too

    @property
    def rule(self) -> str:
        steps = ", then ".join(f"up to {most} in steps of {step}" for most, step in self.cpus)
        least, most = self.memory
        return f"CPUs {'1, or ' if self.one else ''}{steps}; {least:g} to {most:g} GiB of memory for each"

    def has(self, cpus: int) -> bool:
        if cpus < 2:
            return self.one and cpus == 1
        return any(cpus <= most and cpus % step == 0 for most, step in self.cpus[:1]) or any(
            low < cpus <= most and cpus % step == 0
            for (low, _), (most, step) in zip(self.cpus, self.cpus[1:], strict=False)
        )


SERIES = {
    "n1": Series(((96, 2),), (0.9, 6.5), one=True),
    "n2": Series(((32, 2), (128, 4)), (0.5, 8.0)),
    "n2d": Series(((4, 2), (8, 4), (16, 8), (96, 16)), (0.5, 8.0)),
    "n4": Series(((80, 2),), (2.0, 8.0)),
    "e2": Series(((32, 2),), (0.5, 8.0)),
}
ATTACHED: Mapping[str, Mapping[int, int]] = {  # GPU → how many → the most CPUs of the N1 machine beside them
    "T4": {1: 48, 2: 48, 4: 96},
    "P4": {1: 24, 2: 48, 4: 96},
    "P100": {1: 16, 2: 32, 4: 96},
    "V100": {1: 12, 2: 24, 4: 48, 8: 96},
}


def custom_problem(machine: str) -> str:
    """Reason a custom machine does not exist, with the rule; '' if it does, or is not known here."""
    match = CUSTOM.fullmatch(machine)
    series = SERIES.get(match[1] or "n1") if match else None
    if match is None or series is None:
        return ""
    cpus, memory = int(match[2]), int(match[3])
    least, most = series.memory
    if not series.has(cpus):
        return f"{cpus} CPUs: {series.rule}"
    if memory % GRAIN:
        return f"its memory is {memory} MB, which is not a multiple of {GRAIN}"
    each = memory / 1024 / cpus
    if each < least or (each > most and not match[4]):
        return f"{each:.3g} GiB for each CPU: {series.rule}{'' if each < least else ' (more with -ext)'}"
    return ""


def attach_problem(machine: str, gpu: str, count: int) -> str:
    """Why these GPUs do not go beside this machine; '' if they do."""
    known = ATTACHED.get(gpu)
    if known is None:
        own = re.match(r"[ag]\d", machine)  # a type that is newer than this table
        return "" if own else f"{gpu} comes with machines of its own: leave `machine` out"
    if count not in known:
        return f"{count} × {gpu}: only {', '.join(map(str, known))} are possible"
    if not re.fullmatch(r"(n1-.*|custom-.*)", machine):
        return f"{gpu} works with N1 machines only, not with {machine}"
    cpus = cpus_of(machine)
    if cpus > known[count]:
        return f"{count} × {gpu} take {known[count]} CPUs at most, but {machine} has {cpus}"
    return ""


def cpus_of(machine: str) -> int:
    """CPUs of a machine type, where its name tells; 0 where it does not."""
    if custom := CUSTOM.fullmatch(machine):
        return int(custom[2])
    size = machine.rpartition("-")[2]
    return int(size) if size.isdigit() else 0
