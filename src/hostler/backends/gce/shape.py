"""Shape of a fleet's VMs, from its keys: machine, GPUs, image, disk, zones. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hostler.backends.gce.names import region_of
from hostler.backends.gce.wish import limits
from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec.nearest import did_you_mean
from hostler.spec.project import Fleet

GIB = 1 << 30
DISK = 50 * GIB
DEFAULT_ACCOUNT = "default"
CPU_IMAGE = "projects/debian-cloud/global/images/family/debian-12"
GPU_IMAGE = "projects/deeplearning-platform-release/global/images/family/common-cu128-ubuntu-2204-nvidia-570"

_ZONE = re.compile(r"[a-z]+-[a-z]+\d+-[a-z]")
_MACHINE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)+")
_COMPUTE_ACCOUNT = "-compute@developer.gserviceaccount.com"  # how the default account's name ends
_HYPERDISK = ("c4", "n4", "a4", "x4", "m4", "h4")  # families whose machines take no persistent disk


@dataclass(frozen=True)
class Gpu:
    type: str  # as Compute Engine names it
    memory: int  # GiB of one
    machines: Mapping[int, str]  # by how many are wanted; machines that bring theirs along
    attached: bool = False  # goes beside an N1 machine, and is named in the template


SURE = 0.9  # of a GPU's memory on paper: its driver tells a little less
_N1 = {1: "n1-standard-8", 2: "n1-standard-16", 4: "n1-standard-32"}
GPUS = {
    "T4": Gpu("nvidia-tesla-t4", 16, _N1, attached=True),
    "P4": Gpu("nvidia-tesla-p4", 8, _N1, attached=True),
    "P100": Gpu("nvidia-tesla-p100", 16, _N1, attached=True),
    "V100": Gpu("nvidia-tesla-v100", 16, {**_N1, 8: "n1-standard-64"}, attached=True),
    "L4": Gpu(
        "nvidia-l4", 24, {1: "g2-standard-8", 2: "g2-standard-24", 4: "g2-standard-48", 8: "g2-standard-96"}
    ),
    "A100": Gpu("nvidia-tesla-a100", 40, {n: f"a2-highgpu-{n}g" for n in (1, 2, 4, 8)}),
    "A100-80GB": Gpu("nvidia-a100-80gb", 80, {n: f"a2-ultragpu-{n}g" for n in (1, 2, 4, 8)}),
    "H100": Gpu("nvidia-h100-80gb", 80, {n: f"a3-highgpu-{n}g" for n in (1, 2, 4, 8)}),
    "H200": Gpu("nvidia-h200-141gb", 141, {8: "a3-ultragpu-8g"}),
    "B200": Gpu("nvidia-b200", 180, {8: "a4-highgpu-8g"}),
    "RTXPRO6000": Gpu("nvidia-rtx-pro-6000", 96, {1: "g4-standard-48", 8: "g4-standard-384"}),
}
_INSIDE = (  # machines whose GPUs are theirs: which, and how many
    (r"g2-standard-(4|8|12|16|32)", "L4", 1),
    (r"g2-standard-24", "L4", 2),
    (r"g2-standard-48", "L4", 4),
    (r"g2-standard-96", "L4", 8),
    (r"a2-highgpu-(\d)g", "A100", 0),
    (r"a2-megagpu-(16)g", "A100", 0),
    (r"a2-ultragpu-(\d)g", "A100-80GB", 0),
    (r"a3-(?:high|mega|edge)gpu-(\d)g(?:-nolssd)?", "H100", 0),
    (r"a3-ultragpu-(\d)g(?:-nolssd)?", "H200", 0),
    (r"a4-highgpu-(\d)g", "B200", 0),
    (r"g4-standard-48", "RTXPRO6000", 1),
    (r"g4-standard-96", "RTXPRO6000", 2),
    (r"g4-standard-192", "RTXPRO6000", 4),
    (r"g4-standard-384", "RTXPRO6000", 8),
)
_PER_CPU = {  # GiB of memory for each CPU, by series and kind
    "n1-standard": 3.75, "n1-highmem": 6.5, "n1-highcpu": 0.9, "n2-standard": 4, "n2-highmem": 8,
    "n2-highcpu": 1, "n2d-standard": 4, "n2d-highmem": 8, "n2d-highcpu": 1, "e2-standard": 4,
    "e2-highmem": 8, "e2-highcpu": 1, "c2-standard": 4, "c3-standard": 4, "c3-highmem": 8, "g2-standard": 4,
    "c3-highcpu": 2, "g4-standard": 3.75, "n4-standard": 4, "c4-standard": 3.75, "t2d-standard": 4,
}  # fmt: skip
_WHOLE = {"a2-highgpu": 85, "a2-ultragpu": 170, "a3-highgpu": 234, "a3-ultragpu": 368, "a4-highgpu": 496}


@dataclass(frozen=True)
class VmShape:
    machine: str
    gpu: str  # '' for none; a name of GPUS, or Compute Engine's own
    gpus: int
    attached: bool  # its GPUs are named in the template
    spot: bool | str
    image: str
    disk: int  # GiB
    disk_type: str
    network: str  # '': that of the subnetwork
    subnetwork: str
    external_ip: bool
    account: str
    secret_manager: bool
    regions: Mapping[str, tuple[str, ...]]  # region → its zones

    @property
    def has_default_account(self) -> bool:
        return self.account == DEFAULT_ACCOUNT or self.account.endswith(_COMPUTE_ACCOUNT)

    @property
    def zones(self) -> tuple[str, ...]:
        return tuple(zone for zones in self.regions.values() for zone in zones)


def shape(fleet: Fleet, *, project: str = "") -> VmShape:
    values = fleet.options
    name, count = gpu_of(fleet, str(values.get("gpu") or ""))
    machine = str(values.get("machine") or _machine_for(fleet, name, count))
    if not _MACHINE.fullmatch(machine):
        raise _wrong(
            fleet,
            "machine",
            f"{machine!r} is not a machine type",
            "for example e2-standard-4, n2-custom-8-32768",
        )
    if problem := limits.custom_problem(machine):
        raise _wrong(fleet, "machine", f"{machine} does not exist", problem)
    inside = inside_of(machine)
    if inside[1]:
        _check_same(fleet, machine, inside, name, count)
        name, count = inside
    elif name and (problem := limits.attach_problem(machine, name, count)):
        raise _wrong(fleet, "gpu", f"{machine} cannot have {count} × {name}", problem)
    return VmShape(
        machine=machine,
        gpu=name,
        gpus=count,
        attached=bool(name) and not inside[1],
        spot=values.get("spot", True),
        image=_image(fleet, gpu=bool(name)),
        disk=_disk(fleet),
        disk_type="hyperdisk-balanced" if machine.startswith(_HYPERDISK) else "pd-balanced",
        network=_network(str(values.get("network") or ("" if values.get("subnetwork") else "default"))),
        subnetwork=_subnetwork(fleet),
        external_ip=bool(values.get("external_ip", True)),
        account=str(values.get("service_account") or DEFAULT_ACCOUNT),
        secret_manager=bool(values.get("secret_manager")),
        regions=_regions(fleet),
    )  # fmt: skip


def memory_of(machine: str) -> float:
    """GiB of a machine type's memory, where its name tells; 0 where it does not."""
    if custom := limits.CUSTOM.fullmatch(machine):
        return int(custom[3]) / 1024
    series, _, size = machine.rpartition("-")
    if series in _PER_CPU and size.isdigit():
        return _PER_CPU[series] * int(size)
    if series in _WHOLE and re.fullmatch(r"\d+g", size):
        return _WHOLE[series] * int(size[:-1])
    return 0.0


def warnings(found: VmShape) -> list[str]:
    """Lines for a person before it costs money."""
    return [*_memory_warning(found), *_account_warning(found)]


def _account_warning(found: VmShape) -> list[str]:
    if not found.has_default_account:
        return []
    secrets = ", roles/secretmanager.secretAccessor" if found.secret_manager else ""
    return [
        "the VMs have the project's default account, which has the role Editor unless it was taken away: "
        "set `service_account` to one with roles/storage.objectUser on the bucket and "
        f"roles/compute.instanceAdmin.v1{secrets} (docs/gce.md has a narrower role)"
    ]


def _memory_warning(found: VmShape) -> list[str]:
    gpu, host = GPUS.get(found.gpu), memory_of(found.machine)
    if not gpu or not host or host >= gpu.memory * found.gpus:
        return []
    return [
        f"{found.machine} has {host:g} GiB of memory, its GPUs have {gpu.memory * found.gpus} GiB: "
        "a model that fits them may not be loaded or saved"
    ]


def gpu_bytes(name: str) -> int:
    """Bytes that one such GPU has at least, as its driver tells it; 0 for none, or one that is not known."""
    return int(SURE * (GPUS[name].memory << 30)) if name in GPUS else 0


def gpu_of(fleet: Fleet, text: str) -> tuple[str, int]:
    """Name and number of the GPUs that a text means; UsageError for a name that is none."""
    if not text:
        return "", 0
    name, _, count = text.partition(":")
    known = {key.lower(): key for key in GPUS} | {gpu.type: key for key, gpu in GPUS.items()}
    found = known.get(name.lower())
    if found is None:
        raise _wrong(
            fleet,
            "gpu",
            f"GPU {name!r} does not exist",
            did_you_mean(name, list(GPUS), f"one of {', '.join(GPUS)}"),
        )
    return found, int(count or 1)


def _machine_for(fleet: Fleet, gpu: str, count: int) -> str:
    if not gpu:
        return "e2-standard-4"
    machines = GPUS[gpu].machines
    if count not in machines:
        raise _wrong(
            fleet, "gpu", f"no machine has {count} × {gpu}", f"possible: {', '.join(map(str, machines))}"
        )
    return machines[count]


def inside_of(machine: str) -> tuple[str, int]:
    """The GPUs that are part of a machine type, and how many."""
    for pattern, name, count in _INSIDE:
        if match := re.fullmatch(pattern, machine):
            return name, count or int(match[1])
    return "", 0


def _check_same(fleet: Fleet, machine: str, inside: tuple[str, int], gpu: str, count: int) -> None:
    if gpu and (gpu, count) != inside:
        has = f"{inside[1]} × {inside[0]}"
        raise _wrong(fleet, "gpu", f"{machine} has {has}, not {count} × {gpu}", "leave `gpu` out")


def _disk(fleet: Fleet) -> int:
    """GiB, rounded up."""
    disk = fleet.options.get("disk")
    found = -(-int(DISK if disk is None else disk) // GIB)
    if found < limits.LEAST_DISK:
        raise _wrong(
            fleet,
            "disk",
            f"{found} GB are too small for an image",
            f"{limits.LEAST_DISK}GB or more, as the image needs",
        )
    if found > limits.MOST_DISK:
        raise _wrong(
            fleet,
            "disk",
            f"{found} GB are too large for a disk",
            f"{limits.MOST_DISK}GB at most; data belong in the bucket",
        )
    return found


def _image(fleet: Fleet, *, gpu: bool) -> str:
    values = fleet.options
    if values.get("image") and values.get("family"):
        raise _wrong(
            fleet,
            "image",
            "image and family cannot be combined",
            "`image` is one image, `family` the newest of several: leave one out",
        )
    if image := values.get("image"):
        return image if "/" in image else f"global/images/{image}"
    family = str(values.get("family") or "")
    if not family:
        return GPU_IMAGE if gpu else CPU_IMAGE
    project, _, name = family.rpartition("/")
    return (
        family
        if family.count("/") > 1
        else f"{f'projects/{project}/' if project else ''}global/images/family/{name}"
    )


def _network(name: str) -> str:
    return name if "/" in name or not name else f"global/networks/{name}"


def _subnetwork(fleet: Fleet) -> str:
    """Subnetwork of the VMs, which are in one region then: a template names it."""
    name, regions = str(fleet.options.get("subnetwork") or ""), _regions(fleet)
    if not name:
        return ""
    if len(regions) > 1:
        raise _wrong(
            fleet,
            "subnetwork",
            f"{name} is in one region, but the zones are in {', '.join(regions)}",
            "name zones of one region, or a `network` that chooses its subnetworks itself",
        )
    return name if "/" in name else f"regions/{next(iter(regions))}/subnetworks/{name}"


def _regions(fleet: Fleet) -> dict[str, tuple[str, ...]]:
    zones, out = fleet.options.get("zones") or (), frozenset(fleet.options.get("exclude_zones") or ())
    if not zones:
        raise _wrong(
            fleet, "zones", "the fleet names no zone", "for example zones: [us-central1-a, us-central1-b]"
        )
    for zone in (*zones, *out):
        if not _ZONE.fullmatch(zone):
            raise _wrong(fleet, "zones", f"{zone!r} is not a zone", "for example us-central1-a")
    regions: dict[str, tuple[str, ...]] = {}
    for zone in dict.fromkeys(zones):
        if zone not in out:
            regions[region_of(zone)] = (*regions.get(region_of(zone), ()), zone)
    if not regions:
        raise _wrong(fleet, "exclude_zones", "every zone is excluded", "name zones that are not excluded")
    return regions


def _wrong(fleet: Fleet, key: str, message: str, hint: str) -> UsageError:
    return UsageError(f"fleet {fleet.name}: `{key}`: {message}", hint=hint)
