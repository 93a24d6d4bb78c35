"""Quotas of a project, region by region, as far as Compute Engine tells them: enough for one machine? Pure,
but for `ask`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from hostler.backends.gce.client import GceClient, GceRefusal
from hostler.backends.gce.names import last
from hostler.backends.gce.shape import GPUS
from hostler.errors import CloudUnavailable
from hostler.frozen import dataclass

ALL_GPUS = "GPUS_ALL_REGIONS"
EARLY = "PREEMPTIBLE_"
_SHARED = ("e2", "n1", "g2")  # series whose cores count as CPUS; others have a quota of their own, or none


@dataclass(frozen=True)
class Quotas:
    """The room that a project has under its quotas; nothing is known where nobody could be asked."""

    zones: frozenset[str] = frozenset()  # that the project has
    left: Mapping[tuple[str, str], float] = field(default_factory=dict)  # (region or '', metric) → so many

    def lack(self, region: str, machine: str, cpus: float, gpu: str, gpus: int, *, spot: bool) -> str:
        """Quota that is too small for one such machine, in words; '' for none."""
        wanted = [("", ALL_GPUS, float(gpus))] if gpu else []
        wanted += [(region, metric, float(gpus)) for metric in self._gpu_metrics(region, gpu, spot=spot)]
        if machine.partition("-")[0] in _SHARED:
            wanted += [(region, metric, cpus) for metric in self._cpu_metrics(region, spot=spot)]
        for where, metric, amount in wanted:
            left = self.left.get((where, metric))
            if left is not None and left < amount:
                return f"quota {metric}: {max(0.0, left):g} left, {amount:g} needed"
        return ""

    def _gpu_metrics(self, region: str, gpu: str, *, spot: bool) -> list[str]:
        """Spot machines take from the plain quota in a project that has none of their own."""
        if not gpu:
            return []
        short = GPUS[gpu].type.replace("tesla-", "").replace("h100-80gb", "h100")
        plain = f"{short.upper().replace('-', '_')}_GPUS"
        return [f"{EARLY}{plain}" if spot and self.limited(region, f"{EARLY}{plain}") else plain]

    def _cpu_metrics(self, region: str, *, spot: bool) -> list[str]:
        """The same for CPUs."""
        early = f"{EARLY}CPUS"
        return [early if spot and self.limited(region, early) else "CPUS"]

    def limited(self, region: str, metric: str) -> bool:
        return (region, metric) in self.left


def ask(client: GceClient) -> Quotas:
    """All regions in one call; nothing is known where it is refused."""
    try:
        regions = list(client.list("regions"))
        project = client.get("")
    except (GceRefusal, CloudUnavailable):
        return Quotas()
    return read(regions, project)


def read(regions: list[dict[str, Any]], project: Mapping[str, Any]) -> Quotas:
    zones = [last(zone) for region in regions for zone in region.get("zones") or ()]
    left: dict[tuple[str, str], float] = {}
    for name, told in (("", project), *((str(record["name"]), record) for record in regions)):
        for quota in told.get("quotas") or ():
            if "metric" not in quota or quota.get("limit") is None:
                continue
            metric, limit = str(quota["metric"]), float(quota["limit"])
            if limit or not metric.startswith(EARLY):  # none of its own: that of other machines counts
                left[name, metric] = limit - float(quota.get("usage") or 0)
    return Quotas(frozenset(zones), left)
