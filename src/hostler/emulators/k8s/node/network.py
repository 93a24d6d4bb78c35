"""Addresses of pods: each has one of its own on the loopback interface, so that pods really connect.

The range is derived from the cluster's port, so that two clusters on a machine never share an address.
"""

from __future__ import annotations

from collections.abc import Iterable

from hostler.emulators.k8s.controllers import conditions
from hostler.emulators.k8s.storage import Obj

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


def hosts_file(own: Obj, address: str, pods: Iterable[Obj], services: Iterable[Obj]) -> str:
    """Every name that a pod resolves: its own, and those that headless services give to their pods."""
    lines = ["127.0.0.1\tlocalhost", "::1\tlocalhost ip6-localhost ip6-loopback"]
    lines.append(f"{address}\t{_hostname(own)}")
    space = own["metadata"]["namespace"]
    for pod in pods:
        where = pod["status"].get("podIP")
        if where and pod["status"]["phase"] in ("Pending", "Running"):
            names = [name for service in services for name in _names(pod, service, space)]
            lines += ["\t".join([where, *names])] if names else []
    return "\n".join(lines) + "\n"


def _hostname(pod: Obj) -> str:
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])


def _names(pod: Obj, service: Obj, space: str) -> list[str]:
    """Names of a pod in a service, as seen from a namespace."""
    meta, spec = service["metadata"], service["spec"]
    mine = (pod["metadata"]["namespace"], pod["spec"].get("subdomain")) == (meta["namespace"], meta["name"])
    labels, selector = pod["metadata"].get("labels") or {}, spec.get("selector") or {}
    chosen = selector and all(labels.get(key) == value for key, value in selector.items())
    shown = spec.get("publishNotReadyAddresses") or conditions.holds(pod, "Ready")
    if not (mine and chosen and shown and spec.get("clusterIP") == "None"):
        return []
    short = f"{_hostname(pod)}.{meta['name']}"
    longer = f"{short}.{meta['namespace']}"
    here = [short] if space == meta["namespace"] else []
    return [f"{longer}.svc.cluster.local", f"{longer}.svc", longer, *here]
