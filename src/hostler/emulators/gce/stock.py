"""Stock of the platform and limits of the project: shortages of zones, and quotas."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from hostler.emulators.gce.api.links import region_of
from hostler.emulators.gce.api.refusal import Failure
from hostler.emulators.gce.catalog import MachineType

ALL_GPUS = "GPUS_ALL_REGIONS"
PROJECT_LIMITS = {ALL_GPUS: 64.0, "NETWORKS": 15.0, "IMAGES": 2000.0}
REGION_LIMITS = {"CPUS": 2400.0, "PREEMPTIBLE_CPUS": 2400.0, "INSTANCES": 6000.0, "DISKS_TOTAL_GB": 102400.0}
GPU_LIMIT = 64.0
EARLY = "PREEMPTIBLE_"  # before the name of a spot machine's quota


@dataclass(frozen=True)
class Need:
    """Resources that one machine takes."""

    zone: str
    machine: MachineType
    spot: bool
    accelerators: tuple[tuple[str, int], ...] = ()
    disk_gb: float = 0.0

    def metrics(self) -> dict[str, float]:
        """By name of the regional quota."""
        early = EARLY if self.spot else ""
        taken = {f"{early}CPUS": float(self.machine.cpus), "INSTANCES": 1.0, "DISKS_TOTAL_GB": self.disk_gb}
        for kind, count in self.accelerators:
            taken[early + gpu_metric(kind)] = float(count)
        return taken

    def gpus(self) -> float:
        return float(sum(count for _, count in self.accelerators))


@dataclass(frozen=True)
class Shortage:
    zone: str
    machine: str = ""  # of this type alone; else of every one
    spot_only: bool = False

    def meets(self, need: Need) -> bool:
        named = self.machine in ("", need.machine.name)
        return self.zone == need.zone and named and (need.spot or not self.spot_only)


@dataclass
class Stock:
    shortages: set[Shortage] = field(default_factory=set)
    places: dict[str, int] = field(default_factory=dict)  # machines that a zone has room for
    limits: dict[tuple[str, str], float] = field(default_factory=dict)  # (region or "", metric)

    def refuse(self, need: Need, taken: Iterable[Need]) -> Failure | None:
        """Why such a machine cannot be had beside the existing ones; None if it can."""
        needs = list(taken)
        return self._over_quota(need, needs) or self._sold_out(need, needs)

    def has(self, need: Need, taken: Iterable[Need]) -> bool:
        return self._sold_out(need, list(taken)) is None

    def limit(self, region: str, metric: str) -> float:
        default = REGION_LIMITS.get(metric, GPU_LIMIT) if region else PROJECT_LIMITS.get(metric, GPU_LIMIT)
        return self.limits.get((region, metric), default)

    def _sold_out(self, need: Need, there: list[Need]) -> Failure | None:
        room = self.places.get(need.zone)
        full = room is not None and sum(one.zone == need.zone for one in there) >= room
        if full or any(shortage.meets(need) for shortage in self.shortages):
            return _exhausted(need)
        return None

    def _over_quota(self, need: Need, there: list[Need]) -> Failure | None:
        region = region_of(need.zone)
        near = [self._counted(one) for one in there if region_of(one.zone) == region]
        for metric, amount in self._counted(need).items():
            limit = self.limit(region, metric)
            if amount and sum(one.get(metric, 0.0) for one in near) + amount > limit:
                return _exceeded(metric, limit, f"in region {region}", {"region": region})
        limit, gpus = self.limit("", ALL_GPUS), need.gpus()
        if gpus and sum(one.gpus() for one in there) + gpus > limit:
            return _exceeded(ALL_GPUS, limit, "globally", {"global": "global"})
        return None

    def _counted(self, need: Need) -> dict[str, float]:
        """A project without a quota for spot machines pays for them with that of other machines."""
        region = region_of(need.zone)
        return {
            metric if self.limit(region, metric) else metric.removeprefix(EARLY): amount
            for metric, amount in need.metrics().items()
        }


def gpu_metric(kind: str) -> str:
    """`nvidia-tesla-t4` is counted as NVIDIA_T4_GPUS."""
    short = kind.replace("tesla-", "").replace("h100-80gb", "h100")
    return short.upper().replace("-", "_") + "_GPUS"


def _exhausted(need: Need) -> Failure:
    text = (
        f"The zone 'projects/emulated/zones/{need.zone}' does not have enough resources available to fulfill "
        "the request.  Try a different zone, or try again later."
    )
    info = {"reason": "resource_availability", "domain": "compute.googleapis.com"}
    facts = {"vmType": need.machine.name, "zone": need.zone}
    detail: dict[str, Any] = {"errorInfo": {**info, "metadatas": facts}}
    return Failure("ZONE_RESOURCE_POOL_EXHAUSTED", text, 503, (detail,))


def _exceeded(metric: str, limit: float, where: str, dimensions: dict[str, str]) -> Failure:
    text = f"Quota '{metric}' exceeded.  Limit: {limit} {where}."
    info = {"metricName": f"compute.googleapis.com/{metric.lower()}", "limitName": metric, "limit": limit}
    return Failure("QUOTA_EXCEEDED", text, 403, ({"quotaInfo": {**info, "dimensions": dimensions}},))
