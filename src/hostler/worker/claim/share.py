"""Which part of a machine a run has: what it costs is that part of the machine's price. Pure."""

from __future__ import annotations

from hostler.worker.claim.slots import Offer, Placement


def share(offer: Offer, placed: Placement) -> float:
    """The largest of its parts: slots, GPUs, CPUs, memory. A run that has the machine to itself has all."""
    parts = [1.0] if placed.alone else []
    parts += [1 / offer.slots] if offer.slots else []
    if offer.gpus and placed.devices:
        parts.append(len(placed.devices) * placed.share / len(offer.gpus))
    parts += [placed.cpus / offer.cpus] if placed.cpus and offer.cpus else []
    parts += [placed.memory / offer.memory] if placed.memory and offer.memory else []
    return min(1.0, max(parts, default=1.0))
