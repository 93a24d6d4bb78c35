"""Nodes: what a machine of the cluster says of itself. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from hostler.emulators.k8s.moment import stamp
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import World
from hostler.frozen import dataclass

SPOT = "cloud.google.com/gke-spot"
GPU = "nvidia.com/gpu"


@dataclass(frozen=True)
class Size:
    cpu: float
    memory: str
    gpus: int = 0


def make(
    world: World,
    name: str,
    size: Size,
    labels: Mapping[str, str],
    taints: Sequence[Mapping[str, str]],
    spot: bool,
) -> Obj:
    now = stamp(world.clock())
    marks = {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
    marks |= {SPOT: "true"} if spot else {}
    held = [*taints, *([{"key": SPOT, "value": "true", "effect": "NoSchedule"}] if spot else [])]
    room = _room(size)
    meta = {"name": name, "uid": world.new_uid(), "creationTimestamp": now, "labels": marks | dict(labels)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": meta,
        "spec": {"taints": [dict(one) for one in held]} if held else {},
        "status": {
            "capacity": room,
            "allocatable": dict(room),
            "conditions": [_ready(now)],
            "addresses": [
                {"type": "InternalIP", "address": world.network.node},
                {"type": "Hostname", "address": name},
            ],
            "nodeInfo": {"kubeletVersion": "v1.36.0+stand-in", "operatingSystem": "linux"},
        },
    }


def _room(size: Size) -> dict[str, str]:
    found = {"cpu": f"{size.cpu:g}", "memory": size.memory, "pods": "110", "ephemeral-storage": "100Gi"}
    return found | ({GPU: str(size.gpus)} if size.gpus else {})


def _ready(now: str) -> dict[str, Any]:
    return {
        "type": "Ready",
        "status": "True",
        "reason": "KubeletReady",
        "message": "kubelet is posting ready status",
        "lastHeartbeatTime": now,
        "lastTransitionTime": now,
    }
