"""CPUs, memory and GPUs that this machine offers and has free, shared with other workers here.

A GPU is taken by a lock that the kernel gives back when its worker dies. One that holds a stranger's
memory is left alone, and named.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from hostler import env
from hostler.attempt import nvml
from hostler.attempt.nvml import GPU
from hostler.spec.job import Job, Resources
from hostler.spec.names import slug
from hostler.worker.claim import measures, memory
from hostler.worker.claim.gpus import strangers, visible
from hostler.worker.claim.measures import SPARE, Measures, asked, is_measured, spared
from hostler.worker.claim.slots import NEVER, Device, Offer, Placement, asks_nothing, most, place

if TYPE_CHECKING:
    from hostler.worker.run.meter import Peak  # with all that starts processes; submitters ask here too

Say = Callable[[str], None]


class Room:
    def __init__(
        self,
        offer: Offer,
        locks: GpuLocks | None = None,
        read: Callable[[], Sequence[GPU]] | None = None,
        problem: str = "",
        available: Callable[[], int | None] = memory.available,
        promises: memory.Promises | None = None,
    ) -> None:
        """`available`: bytes of memory that nothing uses now."""
        self.offer, self._problem = offer, problem  # why there are no GPUs, as far as the driver tells
        self._locks = locks or GpuLocks()
        self._read = read or nvml.gpus
        self._placed: list[tuple[Placement, Job | None]] = []
        self._available, self._promises = available, promises or memory.Promises()
        self._measures = Measures(offer)
        self._growth = 0  # bytes that measured runs here may still take
        self._named: set[str] = set()
        self._lent: frozenset[str] = frozenset()  # devices on which processes wait for other runs
        self.never: list[str] = []  # why some runs will never fit here

    @property
    def _taken(self) -> list[Placement]:
        """The part that each run holds: one of a measured sweep what it was measured to need."""
        return [self.held(placement, job) for placement, job in self._placed]

    def held(self, placement: Placement, job: Job | None) -> Placement:
        need = self._measures.need(job) if job and is_measured(job) else None
        return measures.held(placement, job.resources, need, self.offer) if job and need else placement

    @property
    def full(self) -> bool:
        """No run at all could be placed now, whatever it asks for."""
        slots = self.offer.slots
        return (slots is not None and len(self._taken) >= slots) or any(
            placement.alone for placement in self._taken
        )

    @property
    def empty(self) -> bool:
        return not self._placed

    @contextmanager
    def reserved(self, say: Say) -> Iterator[Offer]:
        """The offer with the GPUs that are free for us now; those nobody was placed on are given back."""
        free = tuple(device for device in self.offer.gpus if self._get(device, say))
        try:
            yield replace(self.offer, gpus=free)
        finally:
            for device in free:
                self._release(device.id)

    def find(self, offer: Offer, job: Job) -> Placement | str:
        """A placement for one more run of this sweep, or why there is none."""
        if not is_measured(job):
            return place(offer, self._taken, job.resources)
        need = self._measures.need(job)
        if not self._placed:  # one is always carried out
            found = place(spared(offer), (), asked(job.resources, need, self.offer)) if need else ""
            return found if isinstance(found, Placement) else place(offer, (), job.resources)
        if need is None:
            if any(other and other.name == job.name for _, other in self._placed):
                return "the first run of this sweep here is being measured"
            return place(offer, self._taken, job.resources)
        ask = asked(job.resources, need, self.offer)
        found = place(spared(offer), self._taken, ask)
        return found if isinstance(found, str) or self._has_free(ask.memory or 0) else "less memory is free"

    def _has_free(self, size: int) -> bool:
        """Whether so much memory is free, whoever uses the rest, once all runs here have grown."""
        free = self._available()
        if free is None:
            return True
        self._promises.write(self._growth + size)  # before others' are read: theirs is after ours, or seen
        fits = free - self._growth - self._promises.others() - size >= SPARE * self.offer.memory
        if not fits:
            self._promises.write(self._growth)
        return fits

    def measure(self, uses: Iterable[tuple[Job, Placement, Peak]]) -> list[str]:
        """Heed what measured runs have used so far; lines to say."""
        lines, growth = list[str](), 0
        for job, placement, peak in uses:
            lines.append(self._measures.take(job, peak))
            if (need := self._measures.need(job)) and any(one is placement for one, _ in self._placed):
                growth += max(0, (asked(job.resources, need, self.offer).memory or 0) - peak.held)
        self._growth = growth
        self._promises.write(growth)
        return [line for line in lines if line]

    def strain(self, job: Job, kind: str) -> str:
        """A run of this sweep ended out of memory; a line to say."""
        return self._measures.strain(job, kind) if is_measured(job) else ""

    @property
    def crowded(self) -> bool:
        """Whether so little memory is left that a run has to go."""
        free = self._available() if len(self._placed) > 1 else None
        return free is not None and free < SPARE * self.offer.memory / 2

    def can_ever(self, ask: Resources) -> bool:
        found = place(self.offer, (), ask)
        if isinstance(found, Placement):
            return True
        why = found.removeprefix(NEVER)
        if (ask.gpus or ask.gpu_memory is not None) and not self.offer.gpus and self._problem:
            why = f"{why} ({self._problem})"
        if why not in self.never:
            self.never.append(why)
        return False

    def take(self, placement: Placement, job: Job | None = None) -> None:
        self._placed.append((placement, job))

    def give_back(self, placement: Placement) -> None:
        at = next(n for n, (one, _) in enumerate(self._placed) if one is placement)
        del self._placed[at]
        for device in placement.devices:
            self._release(device)

    def lend(self, devices: frozenset[str]) -> None:
        """Processes without a run wait on these devices, and on no others: what is in use there is ours, and
        they are no other worker's."""
        before, self._lent = self._lent, devices
        for device in before - devices:
            self._release(device)

    def close(self) -> None:
        """Nothing runs here any more."""
        self._promises.close()

    def _is_ours(self, device: str) -> bool:
        return device in self._lent or any(device in placement.devices for placement in self._taken)

    def _release(self, device: str) -> None:
        """Another worker may have it, if nothing of ours is on it."""
        if not self._is_ours(device):
            self._locks.release(device)

    def _get(self, device: Device, say: Say) -> bool:
        if self._is_ours(device.id):
            return True
        if not self._locks.acquire(device.id):
            return False
        gpu = next((g for g in self._read() if g.uuid == device.id), None)
        why = strangers(gpu, ()) if gpu else ""
        if why:
            self._locks.release(device.id)
            if why not in self._named:
                self._named.add(why)
                say(why)
        return not why


def offer(*, slots: int | None, cpus: float | None, gpus: str | None) -> Offer:
    """All of this machine that the site shows us, or less if asked."""
    shown = visible(nvml.gpus(), gpus if gpus is not None else env.visible_gpus())
    return Offer(
        cpus=cpus if cpus is not None else float(_cpus()),
        memory=memory.allowed(),
        gpus=tuple(Device(gpu.uuid, gpu.memory_total) for gpu in shown),
        slots=slots,
    )


def at_a_time(job: Job, here: Offer) -> str:
    """How many runs of a sweep a machine carries out at once, and what allows more; '' where its file says it
    by resources of its own. Pure."""
    ask = job.resources
    if job.auto:
        return "as many at a time as fit in this machine's memory, once the first run is measured"
    if ask.nodes > 1 or here.slots is not None or not asks_nothing(ask):
        return ""
    word, more = ("gpus: 0.5", replace(ask, gpus=0.5)) if here.gpus else ("cpus: 1", replace(ask, cpus=1.0))
    now, then = most(here, ask), most(here, more)
    return f"{now} at a time" + (f"; `resources: {{{word}}}` allows {then}" if then > now else "")


def _cpus() -> int:
    """CPUs this process may use: a container or a batch system may allow fewer than there are."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def share(offer: Offer, placed: Placement) -> float:
    """The part of a machine that a run has, and so of its price: the largest of its slots, GPUs, CPUs and
    memory. A run that has the machine to itself has all. Pure."""
    parts = [1.0] if placed.alone else []
    parts += [1 / offer.slots] if offer.slots else []
    if offer.gpus and placed.devices:
        parts.append(len(placed.devices) * placed.share / len(offer.gpus))
    parts += [placed.cpus / offer.cpus] if placed.cpus and offer.cpus else []
    parts += [placed.memory / offer.memory] if placed.memory and offer.memory else []
    return min(1.0, max(parts, default=1.0))


class GpuLocks:
    """Whole devices that this worker holds against other workers of the same person on this machine.

    A lock is held by an open file, so that the kernel gives it back when its worker dies, however it dies.
    Children do not inherit it. Shares of one GPU are therefore shares among the runs of one worker.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder if folder is not None else env.machine_dir() / "gpus"
        self._held: dict[str, int] = {}
        self._mutex = threading.Lock()

    def acquire(self, device: str) -> bool:
        """Whether the device is now this worker's; asking again for one it holds is fine."""
        with self._mutex:
            if device in self._held:
                return True
            self._folder.mkdir(parents=True, exist_ok=True)
            file = os.open(self._folder / slug(device, 100), os.O_RDWR | os.O_CREAT, 0o600)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(file)
                return False
            self._held[device] = file
            return True

    def release(self, device: str) -> None:
        with self._mutex:
            file = self._held.pop(device, None)
            if file is not None:
                os.close(file)

    def held(self) -> list[str]:
        with self._mutex:
            return sorted(self._held)

    def close(self) -> None:
        for device in self.held():
            self.release(device)
