"""Addresses of pods: each has one of its own on the loopback interface, so that pods really connect.

The range is derived from the cluster's port, so that two clusters on a machine never share an address.
"""

from __future__ import annotations

from collections.abc import Iterable

from hostler.testing.k8s.storage import Obj

_ROOM = 250


class Network:
    def __init__(self, port: int) -> None:
        self._prefix = f"127.{port >> 8}.{port & 255}"
        self._taken: set[int] = set()
        self._last = 0

    @property
    def node(self) -> str:
        """The address of every node."""
        return f"{self._prefix}.254"

    def take(self) -> str | None:
        """The next free one; None when all are taken."""
        for step in range(_ROOM):
            number = (self._last + step) % _ROOM + 1
            if number not in self._taken:
                self._taken.add(number)
                self._last = number
                return f"{self._prefix}.{number}"
        return None

    def give_back(self, address: str) -> None:
        self._taken.discard(int(address.rpartition(".")[2]))


def hosts_file(pods: Iterable[Obj], services: Iterable[Obj]) -> str:
    """Every name that a pod of the cluster resolves: each pod's own, and those of headless services."""
    lines = ["127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback"]
    headless = {
        (one["metadata"]["namespace"], one["metadata"]["name"]): one["spec"].get("selector") or {}
        for one in services
        if one["spec"].get("clusterIP") == "None"
    }
    for pod in pods:
        address = pod.get("status", {}).get("podIP")
        if address and pod["status"]["phase"] in ("Pending", "Running"):
            lines.append("\t".join([address, *_names(pod, headless)]))
    return "\n".join(lines) + "\n"


def _names(pod: Obj, headless: dict[tuple[str, str], dict[str, str]]) -> list[str]:
    meta, spec = pod["metadata"], pod["spec"]
    hostname, service = spec.get("hostname") or meta["name"], spec.get("subdomain", "")
    selector = headless.get((meta["namespace"], service))
    labels = meta.get("labels") or {}
    if not selector or any(labels.get(key) != value for key, value in selector.items()):
        return [hostname]
    short = f"{hostname}.{service}"
    longer = f"{short}.{meta['namespace']}"
    return [f"{longer}.svc.cluster.local", f"{longer}.svc", longer, short, hostname]
