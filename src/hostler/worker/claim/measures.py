"""Needs of the runs of a sweep with `parallel: auto`, as they were measured on this machine.

The sweep's first run here has the machine, or one GPU, to itself. Once it is over, or its memory has ceased
to grow, its peaks say how many fit: a fifth is added to each run's memory, and a tenth of the machine's is
left free. A run that uses more raises the need of all. What a person asks for under `resources:` holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Protocol

from hostler.frozen import dataclass
from hostler.spec.job import Job, Resources
from hostler.worker.claim.slots import Offer, Placement
from hostler.worker.run.kinds import CUDA_MEMORY, MEMORY

HEADROOM = 1.2  # times the largest peak of memory: a run's need
SPARE = 0.1  # of the machine's memory that is left free
STRAINED = 1.5  # times its need before, after a run was out of memory
LEAST_CPUS = 0.25  # of a run that hardly computes
LEAST_GPU = 16  # runs on one GPU at most


class Peaks(Protocol):
    """The most that a run has used so far."""

    @property
    def cpus(self) -> float: ...
    @property
    def memory(self) -> int: ...
    @property
    def gpu_memory(self) -> int: ...
    @property
    def settled(self) -> bool: ...


@dataclass(frozen=True)
class Need:
    """CPUs, and bytes with headroom."""

    cpus: float = 0.0
    memory: int = 0
    gpu_memory: int = 0


class Measures:
    """Needs by sweep. `take`, `strain` return a line when the number of runs at once is chosen or lowered."""

    def __init__(self, offer: Offer) -> None:
        self._offer = offer
        self._needs: dict[str, Need] = {}
        self._told: dict[str, int] = {}

    def need(self, job: Job) -> Need | None:
        return self._needs.get(job.name)

    def take(self, job: Job, peaks: Peaks) -> str:
        """Peaks of a run; those of the first count once they are settled."""
        old = self._needs.get(job.name)
        if old is None and not peaks.settled:
            return ""
        cpus = max(peaks.cpus, LEAST_CPUS) if peaks.settled else 0.0
        need = Need(cpus, int(peaks.memory * HEADROOM), int(peaks.gpu_memory * HEADROOM))
        return self._keep(job, need, old or need)

    def strain(self, job: Job, kind: str) -> str:
        """A run was out of memory, or its GPU was."""
        old = self._needs.get(job.name)
        if old is None or kind not in (MEMORY, CUDA_MEMORY):
            return ""
        raised = replace(old, memory=int(old.memory * STRAINED))
        if kind == CUDA_MEMORY:
            raised = replace(old, gpu_memory=int(self._asked(job, old).gpu_memory or 0) * 3 // 2)
        return self._keep(job, raised, old)

    def _keep(self, job: Job, seen: Need, old: Need) -> str:
        need = Need(
            max(seen.cpus, old.cpus), max(seen.memory, old.memory), max(seen.gpu_memory, old.gpu_memory)
        )
        self._needs[job.name] = need
        count, bound = at_once(self._offer, self._asked(job, need))
        before = self._told.get(job.name)
        if before is not None and count >= before:
            return ""
        self._told[job.name] = count
        was = f", {before} before" if before is not None else ""
        return f"{job.name}: {count} at once on this machine{was}: {self._why(job, need, bound)}"

    def _why(self, job: Job, need: Need, bound: str) -> str:
        asked, offer = self._asked(job, need), self._offer
        rows = [f"{asked.cpus or 0:.2g} of {offer.cpus:g} CPUs"]
        rows.append(f"{_gb(asked.memory or 0)} of {_gb(spared(offer).memory)} of memory")
        if asked.gpu_memory is not None and offer.gpus:
            rows.append(f"{_gb(asked.gpu_memory)} of {_gb(max(d.memory for d in offer.gpus))} on a GPU")
        return f"a run takes {', '.join(rows)}; the bound is {bound}"

    def _asked(self, job: Job, need: Need) -> Resources:
        return asked(job.resources, need, self._offer)


def is_measured(job: Job) -> bool:
    """Whether this machine is filled with its runs by measure."""
    return job.auto and job.resources.nodes == 1


def asked(ask: Resources, need: Need, offer: Offer) -> Resources:
    """The resources that a run is given: a person's numbers, else its need. Pure."""
    cpus = ask.cpus if ask.cpus is not None else min(need.cpus, offer.cpus)
    resources = replace(ask, cpus=cpus, memory=ask.memory if ask.memory is not None else need.memory)
    if ask.gpus or ask.gpu_memory is not None or not offer.gpus or offer.slots is not None:
        return resources
    smallest = min(device.memory for device in offer.gpus)
    return replace(resources, gpu_memory=min(max(need.gpu_memory, smallest // LEAST_GPU), smallest))


def held(placement: Placement, ask: Resources, need: Need, offer: Offer) -> Placement:
    """The part of the machine that a run holds now, by its sweep's need. Pure."""
    resources = asked(ask, need, offer)
    found = replace(placement, cpus=resources.cpus or 0.0, memory=resources.memory or 0, alone=False)
    if not placement.devices or ask.gpus or ask.gpu_memory is not None:
        return found
    sizes = [device.memory for device in offer.gpus if device.id in placement.devices and device.memory]
    memory = resources.gpu_memory or 0
    return replace(found, gpu_memory=memory, share=min(1.0, memory / min(sizes)) if sizes else 1.0)


def spared(offer: Offer) -> Offer:
    """The machine less the memory that is left free."""
    return replace(offer, memory=int(offer.memory * (1 - SPARE)))


def at_once(offer: Offer, ask: Resources) -> tuple[int, str]:
    """How many such runs an empty machine holds, and what bounds them. Pure."""
    return min(
        ((max(count, 1), bound) for count, bound in _bounds(spared(offer), ask)), default=(1, "memory")
    )


def _bounds(offer: Offer, ask: Resources) -> Iterator[tuple[int, str]]:
    if ask.memory:
        yield offer.memory // ask.memory, "memory"
    if ask.cpus:
        yield int(offer.cpus / ask.cpus + 1e-9), "CPUs"
    if ask.gpu_memory is not None and ask.gpu_memory > 0:
        yield sum(device.memory // ask.gpu_memory for device in offer.gpus), "GPU memory"
    elif ask.gpus:
        whole = int(len(offer.gpus) // ask.gpus) if ask.gpus >= 1 else len(offer.gpus) * int(1 / ask.gpus)
        yield whole, "GPUs"
    if offer.slots is not None:
        yield offer.slots, "slots"


def _gb(size: int) -> str:
    return f"{size / 1e9:.3g} GB"
