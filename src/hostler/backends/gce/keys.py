"""Keys of fleets on Compute Engine."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator

from hostler.spec.files.parse import CpuBound, Disk, FleetKeys, Gpus, MemoryBound, Seconds, Spot, Text, Texts


def _places(given: tuple[str, ...]) -> tuple[str, ...]:
    """Places as Compute Engine writes them: `US` is us, and `us, europe` are two."""
    return tuple(word for text in given for word in text.lower().replace(",", " ").split())


Places = Annotated[Texts, AfterValidator(_places)]


class GceKeys(FleetKeys):
    counted = True

    backend: Literal["gce"]
    project: Text | None = None
    zones: Places | None = None
    exclude_zones: Places | None = None
    machine: Text | None = None
    gpu: Gpus | None = None
    cpus: CpuBound | None = None
    memory: MemoryBound | None = None
    mix: bool | None = None
    spot: Spot | None = None
    image: Text | None = None
    family: Text | None = None
    disk: Disk | None = None
    network: Text | None = None
    subnetwork: Text | None = None
    external_ip: bool | None = None
    service_account: Text | None = None
    secret_manager: bool | None = None
    deadline: Seconds | None = None


KEYS = GceKeys
