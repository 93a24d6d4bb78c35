"""CPUs, memory and GPUs that this machine offers and has free, shared with other workers here.

A GPU is taken by a lock that the kernel gives back when its worker dies. One that holds a stranger's
memory is left alone, and named.
"""

from __future__ import annotations

import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from hostler import env
from hostler.spec.job import Resources
from hostler.spec.names import slug
from hostler.worker.claim import memory
from hostler.worker.claim.gpus import strangers, visible
from hostler.worker.claim.slots import NEVER, Device, Offer, Placement, place
from hostler.worker.run import nvml
from hostler.worker.run.nvml import GPU

Say = Callable[[str], None]


class Room:
    def __init__(
        self,
        offer: Offer,
        locks: GpuLocks | None = None,
        read: Callable[[], Sequence[GPU]] | None = None,
        problem: str = "",
    ) -> None:
        self.offer, self._problem = offer, problem  # why there are no GPUs, as far as the driver tells
        self._locks = locks or GpuLocks()
        self._read = read or nvml.gpus
        self._taken: list[Placement] = []
        self._named: set[str] = set()
        self.never: list[str] = []  # why some runs will never fit here

    @property
    def full(self) -> bool:
        """No run at all could be placed now, whatever it asks for."""
        slots = self.offer.slots
        return (slots is not None and len(self._taken) >= slots) or any(one.alone for one in self._taken)

    @property
    def empty(self) -> bool:
        return not self._taken

    @contextmanager
    def reserved(self, say: Say) -> Iterator[Offer]:
        """The offer with the GPUs that are free for us now; those nobody was placed on are given back."""
        free = tuple(device for device in self.offer.gpus if self._get(device, say))
        try:
            yield replace(self.offer, gpus=free)
        finally:
            for device in free:
                if not any(device.id in one.devices for one in self._taken):
                    self._locks.release(device.id)

    def find(self, offer: Offer, ask: Resources) -> Placement | str:
        return place(offer, self._taken, ask)

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

    def take(self, placement: Placement) -> None:
        self._taken.append(placement)

    def give_back(self, placement: Placement) -> None:
        self._taken.remove(placement)
        for device in placement.devices:
            if not any(device in one.devices for one in self._taken):
                self._locks.release(device)

    def _get(self, device: Device, say: Say) -> bool:
        if any(device.id in one.devices for one in self._taken):
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
