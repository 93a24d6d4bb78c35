"""The offer of the emulated platform: regions and their zones, machine types, accelerators, public images."""

from __future__ import annotations

import re

from hostler.frozen import dataclass

REGIONS = {
    "us-central1": "abcf",
    "us-east1": "bcd",
    "us-west1": "abc",
    "europe-west4": "abc",
    "asia-southeast1": "abc",
}
ZONES = tuple(f"{region}-{letter}" for region, letters in REGIONS.items() for letter in letters)
ACCELERATORS = {
    "nvidia-tesla-t4": 4,
    "nvidia-tesla-v100": 8,
    "nvidia-tesla-p100": 4,
    "nvidia-l4": 8,
    "nvidia-tesla-a100": 16,
    "nvidia-a100-80gb": 8,
    "nvidia-h100-80gb": 8,
}
PUBLIC = {
    "debian-cloud": ("debian-12", "debian-13"),
    "ubuntu-os-cloud": ("ubuntu-2204-lts", "ubuntu-2404-lts-amd64"),
    "deeplearning-platform-release": ("common-cu128-ubuntu-2204-nvidia-570", "pytorch-latest-gpu"),
    "cos-cloud": ("cos-stable",),
}
_FAMILIES = {  # memory of a CPU in MB, by kind of machine
    "e2": {"standard": 4096, "highmem": 8192, "highcpu": 1024},
    "n1": {"standard": 3840, "highmem": 6656, "highcpu": 922},
    "n2": {"standard": 4096, "highmem": 8192, "highcpu": 1024},
    "n2d": {"standard": 4096, "highmem": 8192, "highcpu": 1024},
    "c2": {"standard": 4096},
    "c3": {"standard": 4096, "highmem": 8192, "highcpu": 2048},
    "t2d": {"standard": 4096},
}
_SIZES = (1, 2, 4, 8, 16, 32, 48, 64, 96)
_CUSTOM = re.compile(r"(?:(e2|n1|n2|n2d)-)?custom-(\d+)-(\d+)(?:-ext)?")


@dataclass(frozen=True)
class MachineType:
    name: str
    cpus: int
    memory_mb: int
    accelerator: str = ""
    count: int = 0


_NAMED = (
    MachineType("e2-micro", 2, 1024),
    MachineType("e2-small", 2, 2048),
    MachineType("e2-medium", 2, 4096),
    MachineType("f1-micro", 1, 614),
    MachineType("g1-small", 1, 1740),
    MachineType("g2-standard-4", 4, 16384, "nvidia-l4", 1),
    MachineType("g2-standard-8", 8, 32768, "nvidia-l4", 1),
    MachineType("g2-standard-12", 12, 49152, "nvidia-l4", 1),
    MachineType("g2-standard-16", 16, 65536, "nvidia-l4", 1),
    MachineType("g2-standard-24", 24, 98304, "nvidia-l4", 2),
    MachineType("g2-standard-32", 32, 131072, "nvidia-l4", 1),
    MachineType("g2-standard-48", 48, 196608, "nvidia-l4", 4),
    MachineType("g2-standard-96", 96, 393216, "nvidia-l4", 8),
    MachineType("a2-highgpu-1g", 12, 87040, "nvidia-tesla-a100", 1),
    MachineType("a2-highgpu-2g", 24, 174080, "nvidia-tesla-a100", 2),
    MachineType("a2-highgpu-4g", 48, 348160, "nvidia-tesla-a100", 4),
    MachineType("a2-highgpu-8g", 96, 696320, "nvidia-tesla-a100", 8),
    MachineType("a2-ultragpu-1g", 12, 174080, "nvidia-a100-80gb", 1),
    MachineType("a3-highgpu-1g", 26, 239616, "nvidia-h100-80gb", 1),
    MachineType("a3-highgpu-8g", 208, 1916928, "nvidia-h100-80gb", 8),
)


def machine_types() -> list[MachineType]:
    """All with a name of their own."""
    made = [
        MachineType(f"{family}-{kind}-{size}", size, size * memory)
        for family, kinds in _FAMILIES.items()
        for kind, memory in kinds.items()
        for size in _SIZES
    ]
    return [*_NAMED, *made]


def machine_type(name: str) -> MachineType | None:
    """By name; a custom one (`n2-custom-4-8192`) is made as asked for."""
    custom = _CUSTOM.fullmatch(name)
    if custom:
        return MachineType(name, int(custom[2]), int(custom[3]))
    return next((one for one in machine_types() if one.name == name), None)


def zones_of(region: str) -> list[str]:
    return [f"{region}-{letter}" for letter in REGIONS.get(region, "")]
