"""The decision whether another run fits on this machine, and which part of it the run gets.

Pure. Whole GPUs are held by one run; a share (`gpus: 0.5`, or `gpu_memory` alone) is part of one GPU, where
shares sum to at most 1 and memory to at most the device's. A run that asks for nothing gets the machine to
itself, or, on a machine with GPUs, one GPU to itself. CPUs and memory count only where they are asked for.
`slots` is a bound on the number of runs besides; with it, a run that asks for no GPU is given none and sees
what the worker sees.
"""

from __future__ import annotations

from collections.abc import Sequence

from hostler.frozen import dataclass
from hostler.spec.job import Resources
from hostler.spec.units import counted

NEVER = "never: "  # starts every reason that waiting does not mend
MANY = 10_000  # runs at once, beyond which nobody counts
GRAIN = 1e-9  # shares are sums of decimal fractions


@dataclass(frozen=True)
class Device:
    id: str
    memory: int = 0  # bytes; 0: not known


@dataclass(frozen=True)
class Offer:
    """CPUs, memory, GPUs and slots that a machine has for runs."""

    cpus: float
    memory: int
    gpus: tuple[Device, ...] = ()
    slots: int | None = None


@dataclass(frozen=True)
class Placement:
    """The part of a machine that a run holds. `share` and `gpu_memory` are of each of its devices."""

    devices: tuple[str, ...] = ()
    cpus: float = 0.0
    memory: int = 0
    share: float = 0.0
    gpu_memory: int = 0
    alone: bool = False  # asked for nothing, on a machine without GPUs

    @property
    def visible(self) -> str | None:
        """The run's CUDA_VISIBLE_DEVICES; None: left as the worker has it."""
        return ",".join(self.devices) if self.devices else None


def place(offer: Offer, taken: Sequence[Placement], ask: Resources) -> Placement | str:
    """A placement for one more run, or why there is none."""
    reason = _impossible(offer, ask) or _full(offer, taken, ask)
    if reason:
        return reason
    alone = asks_nothing(ask) and offer.slots is None and not offer.gpus
    base = Placement(cpus=ask.cpus or 0.0, memory=ask.memory or 0, alone=alone)
    if not _wants_gpu(offer, ask):
        return base
    return _on_part(offer, taken, ask, base) if _is_share(ask) else _on_whole(offer, taken, ask, base)


def most(offer: Offer, ask: Resources) -> int:
    """How many such runs an empty machine holds."""
    taken: list[Placement] = []
    while len(taken) < MANY and isinstance(found := place(offer, taken, ask), Placement):
        taken.append(found)
    return len(taken)


def _impossible(offer: Offer, ask: Resources) -> str:
    if (ask.cpus or 0) > offer.cpus:
        return f"{NEVER}asks for {ask.cpus:g} CPUs, this machine offers {offer.cpus:g}"
    if (ask.memory or 0) > offer.memory:
        return f"{NEVER}asks for {_gb(ask.memory)} of memory, this machine offers {_gb(offer.memory)}"
    if ask.gpus > 1 and ask.gpus != int(ask.gpus):
        return f"{NEVER}asks for {ask.gpus:g} GPUs: a share (below 1) or a whole number"
    if not ask.gpus and ask.gpu_memory is None:
        return ""
    if max(ask.gpus, 1) > len(offer.gpus):
        return (
            f"{NEVER}asks for {counted(int(max(ask.gpus, 1)), 'GPU')}, this machine offers {len(offer.gpus)}"
        )
    return _too_small(offer, ask)


def _too_small(offer: Offer, ask: Resources) -> str:
    if ask.gpu_memory is None or sum(_holds(device, ask.gpu_memory) for device in offer.gpus) >= max(
        ask.gpus, 1
    ):
        return ""
    return f"{NEVER}asks for {_gb(ask.gpu_memory)} on a GPU, this machine's GPUs have less"


def _full(offer: Offer, taken: Sequence[Placement], ask: Resources) -> str:
    if offer.slots is not None and len(taken) >= offer.slots:
        return f"all {offer.slots} slots are taken"
    if any(placement.alone for placement in taken) or (
        taken and not offer.gpus and offer.slots is None and asks_nothing(ask)
    ):
        return "a run that asks for no resources has the machine to itself"
    if sum(placement.cpus for placement in taken) + (ask.cpus or 0) > offer.cpus + GRAIN:
        return f"asks for {ask.cpus or 0:g} CPUs, fewer are free"
    if sum(placement.memory for placement in taken) + (ask.memory or 0) > offer.memory:
        return f"asks for {_gb(ask.memory)} of memory, less is free"
    return ""


def _on_whole(offer: Offer, taken: Sequence[Placement], ask: Resources, base: Placement) -> Placement | str:
    count = max(int(ask.gpus), 1)
    used = {device for placement in taken for device in placement.devices}
    fitting = [
        d for d in offer.gpus if d.id not in used and (ask.gpu_memory is None or _holds(d, ask.gpu_memory))
    ]
    if len(fitting) < count:
        return f"asks for {counted(count, 'whole GPU')}, {len(fitting)} free"
    chosen = tuple(device.id for device in fitting[:count])
    return Placement(chosen, base.cpus, base.memory, share=1.0, gpu_memory=ask.gpu_memory or 0)


def _on_part(offer: Offer, taken: Sequence[Placement], ask: Resources, base: Placement) -> Placement | str:
    """The emptiest GPU with room; a share without memory takes as much of it, and the other way round."""
    options: list[tuple[float, Placement]] = []
    for device in offer.gpus:
        share, memory = _part(device, ask)
        on_it = [placement for placement in taken if device.id in placement.devices]
        sum_share = sum(placement.share for placement in on_it)
        if sum_share + share > 1 + GRAIN or (
            ask.gpu_memory is not None and not _holds(device, ask.gpu_memory)
        ):
            continue
        if device.memory and sum(placement.gpu_memory for placement in on_it) + memory > device.memory:
            continue
        options.append((sum_share, Placement((device.id,), base.cpus, base.memory, share, memory)))
    return min(options, key=lambda option: option[0])[1] if options else f"no GPU has {_wanted(ask)} free"


def _part(device: Device, ask: Resources) -> tuple[float, int]:
    memory = ask.gpu_memory if ask.gpu_memory is not None else int(ask.gpus * device.memory)
    return ask.gpus or (memory / device.memory if device.memory else 1.0), memory


def asks_nothing(ask: Resources) -> bool:
    return not ask.gpus and ask.gpu_memory is None and ask.cpus is None


def _wants_gpu(offer: Offer, ask: Resources) -> bool:
    spread = asks_nothing(ask) and bool(offer.gpus) and offer.slots is None
    return ask.gpus > 0 or ask.gpu_memory is not None or spread


def _is_share(ask: Resources) -> bool:
    return 0 < ask.gpus < 1 or (not ask.gpus and ask.gpu_memory is not None)


def _holds(device: Device, memory: int) -> bool:
    return device.memory >= memory


def _wanted(ask: Resources) -> str:
    return f"a share of {ask.gpus:g}" if ask.gpus else _gb(ask.gpu_memory)


def _gb(size: int | None) -> str:
    return f"{(size or 0) / 1e9:.3g} GB"
