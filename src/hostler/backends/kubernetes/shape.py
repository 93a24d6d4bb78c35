"""Shape of a fleet's pods, from its keys: image, resources, nodes, volumes, account. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from typing import Any

from hostler.backends.base import Launch
from hostler.backends.kubernetes.volumes import Volume, volumes
from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec.job import Resources
from hostler.spec.nearest import did_you_mean
from hostler.spec.project import Fleet
from hostler.spec.scalars import text
from hostler.spec.units import counted, show_size

IMAGE = "python:3.12-slim"
GPU = "nvidia.com/gpu"
OWN = 512 << 20  # bytes for the worker itself, beside what its run asks for

Body = dict[str, Any]


@dataclass(frozen=True)
class Spot:
    """How the nodes that may be taken away at any time are told from the others."""

    selector: Mapping[str, str]
    tolerations: Sequence[Body] = ()


def _tainted(label: str, value: str) -> Spot:
    tolerated = {"key": label, "operator": "Equal", "value": value, "effect": "NoSchedule"}
    return Spot({label: value}, (tolerated,))


SPOTS = {
    "gke": _tainted("cloud.google.com/gke-spot", "true"),
    "aks": _tainted("kubernetes.azure.com/scalesetpriority", "spot"),
    "eks": Spot({"eks.amazonaws.com/capacityType": "SPOT"}),
    "karpenter": Spot({"karpenter.sh/capacity-type": "spot"}),
}
_TOLERATION = ("key", "operator", "value", "effect", "tolerationSeconds")


@dataclass(frozen=True)
class PodShape:
    image: str
    requests: Mapping[str, str]
    limits: Mapping[str, str]
    cpus: float | None  # that a worker offers; None: all it sees
    sized: bool  # the pod's size is the fleet's own, not that of one run
    selector: Mapping[str, str]
    tolerations: Sequence[Body]
    volumes: Sequence[Volume] = field(default_factory=list)
    account: str = ""
    pull_secrets: Sequence[str] = ()
    pull: str = ""
    queue: str = ""
    secret: str = ""
    user: int | None = None

    def resources(self, *, gpus: bool = True) -> Body:
        """Resources of a container. Where a namespace has quotas, each must say what it takes."""
        requests, limits = (
            {name: count for name, count in given.items() if gpus or name in ("cpu", "memory")}
            for given in (self.requests, self.limits)
        )
        return {"requests": requests, "limits": limits}


def shape(fleet: Fleet, launch: Launch) -> PodShape:
    values = fleet.options
    asked = fleet.resources or launch.resources
    requests, limits = _resources(fleet, asked)
    _check_size(fleet, limits, launch.resources)
    spot = _spot(fleet)
    pulls = values.get("pull_secret") or ()
    return PodShape(
        image=str(values.get("image") or IMAGE),
        requests=requests,
        limits=limits,
        cpus=asked.cpus,
        sized=fleet.resources is not None,
        selector={**spot.selector, **(values.get("node_selector") or {})},
        tolerations=[*spot.tolerations, *_tolerations(fleet), *_for_gpus(limits)],
        volumes=volumes(fleet),
        account=str(values.get("service_account") or ""),
        pull_secrets=(pulls,) if isinstance(pulls, str) else tuple(pulls),
        pull=str(values.get("pull") or ""),
        queue=str(values.get("queue") or ""),
        secret=str(values.get("secret") or ""),
        user=values.get("user"),
    )


def python_of(image: str, selector: Mapping[str, str]) -> tuple[str, tuple[str, ...]]:
    """The Python and the system of an image, as far as its name tells: what is brought must run there."""
    tag = image.rpartition("/")[2]
    match = re.search(r"py(?:thon)?[:-]?(3\.\d+)", tag)
    python = f"{match[1]}.0" if match else "3.11.0"
    processor = "aarch64" if selector.get("kubernetes.io/arch") == "arm64" else "x86_64"
    if "alpine" in tag:
        return python, ("linux", processor, "musl", "1.2")
    return python, ("linux", processor, "glibc", "2.36" if tag.startswith("python:") else "2.31")


def _resources(fleet: Fleet, asked: Resources) -> tuple[Body, Body]:
    """CPUs are asked for and may be more where nobody needs them; memory and GPUs are what they are."""
    requests: Body = {}
    if asked.cpus:
        requests["cpu"] = _quantity(asked.cpus)
    limits: Body = {}
    if asked.memory:
        limits["memory"] = str(asked.memory if fleet.resources else asked.memory + OWN)
    gpus = fleet.options.get("gpus")
    count = math.ceil(asked.gpus) or bool(asked.gpu_memory) if gpus is None else int(gpus)
    if count:
        limits[str(fleet.options.get("gpu_resource") or GPU)] = str(int(count))
    return {**requests, **limits}, limits


def _check_size(fleet: Fleet, limits: Body, run: Resources) -> None:
    """Pods that are smaller than a run would come, take nothing and go."""
    own = fleet.resources or Resources()
    gpus = int(limits.get(str(fleet.options.get("gpu_resource") or GPU), 0))
    lacks = []
    if own.cpus and run.cpus and own.cpus < run.cpus:
        lacks.append((counted(own.cpus, "CPU"), counted(run.cpus, "CPU")))
    if own.memory and run.memory and own.memory < run.memory:
        lacks.append((f"{show_size(own.memory)} of memory", f"{show_size(run.memory)} of memory"))
    if gpus < run.gpus:
        lacks.append((counted(gpus, "GPU"), counted(run.gpus, "GPU")))
    if lacks:
        has, takes = (" and ".join(words) for words in zip(*lacks, strict=True))
        raise UsageError(
            f"fleet {fleet.name}: a pod has {has}, but a run takes {takes}",
            hint=f"raise `resources` and `gpus` of fleet {fleet.name}, or lower `resources` of the project",
        )


def _quantity(cpus: float) -> str:
    return str(int(cpus)) if cpus == int(cpus) else f"{math.ceil(cpus * 1000)}m"


def _spot(fleet: Fleet) -> Spot:
    spot = fleet.options.get("spot")
    if not spot:
        return Spot({})
    name = "gke" if spot is True else str(spot)
    if name not in SPOTS:
        raise UsageError(
            f"fleet {fleet.name}: spot: {name!r} is not a kind of cluster",
            hint=did_you_mean(name, list(SPOTS), f"true or one of {', '.join(SPOTS)}; or node_selector"),
        )
    return SPOTS[name]


def _tolerations(fleet: Fleet) -> list[Body]:
    tolerations = [_as_texts(toleration) for toleration in fleet.options.get("tolerations") or ()]
    for record in tolerations:
        for key in record:
            if key not in _TOLERATION:
                raise UsageError(
                    f"fleet {fleet.name}: tolerations have no key {key!r}",
                    hint=did_you_mean(key, _TOLERATION, f"keys: {', '.join(_TOLERATION)}"),
                )
    return tolerations


def _as_texts(given: Mapping[str, Any]) -> Body:
    """`value: true` in a file is the text that a taint has."""
    return {
        key: text(value) if key == "value" and not isinstance(value, str) else value
        for key, value in given.items()
    }


def _for_gpus(limits: Mapping[str, str]) -> list[Body]:
    """Clusters keep others off nodes with GPUs by a taint that is called as the GPU is."""
    kinds = [name for name in limits if name not in ("cpu", "memory")]
    return [{"key": name, "operator": "Exists", "effect": "NoSchedule"} for name in kinds]
