"""Volumes that a fleet's pods mount, from its `volumes`, and the check that the store is on one. Pure.

A table from mount path to source, or a list of sources with their `mount`:

    /data: my-claim                        a PersistentVolumeClaim
    /mnt/ssd: {host: /mnt/ssd}             a folder of the node
    /scratch: {empty: 100GB}               a disk that goes with the pod; {empty: true} for any size
    /dev/shm: {memory: 8GB}                memory that looks like a disk
    /keys: {secret: name}, /etc/x: {config_map: name}
    /nfs: {nfs: {server: s, path: /p}}     any other source, as Kubernetes writes it

`read_only: true` may stand beside each.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hostler.backends.kubernetes.host import HOME
from hostler.errors import UsageError
from hostler.frozen import dataclass
from hostler.spec.project import Fleet
from hostler.spec.units import size

SHM = "/dev/shm"
_HINT = "for example /data: my-claim, /mnt: {host: /mnt}, /scratch: {empty: 50GB}, /dev/shm: {memory: 8GB}"


@dataclass(frozen=True)
class Volume:
    name: str
    mount: str
    source: Mapping[str, Any]  # as Kubernetes has it
    read_only: bool = False
    lasts: bool = False  # what is written to it outlives the pod

    @property
    def body(self) -> dict[str, Any]:
        return {"name": self.name, **self.source}

    @property
    def mounted(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "mountPath": self.mount,
            **({"readOnly": True} if self.read_only else {}),
        }


def volumes(fleet: Fleet) -> list[Volume]:
    """Volumes of the fleet, and shared memory of any size for data loaders, unless it names its own."""
    found = [_volume(fleet, n, mount, given) for n, (mount, given) in enumerate(_entries(fleet))]
    mounts = [volume.mount for volume in found]
    twice = next((mount for n, mount in enumerate(mounts) if mount in mounts[:n]), None)
    if twice:
        raise _wrong(fleet, f"{twice} is mounted twice")
    if SHM not in mounts:
        found.append(Volume("shm", SHM, {"emptyDir": {"medium": "Memory"}}))
    return found


def holds(found: Sequence[Volume], path: str) -> bool:
    """Whether a path is on a volume that others see, too, and that can be written to."""
    within = [one for one in found if posixpath.commonpath([one.mount, path]) == one.mount]
    nearest = max(within, key=lambda one: len(one.mount), default=None)
    return nearest is not None and nearest.lasts and not nearest.read_only


def _entries(fleet: Fleet) -> Iterator[tuple[str, Any]]:
    given = fleet.options.get("volumes") or {}
    if isinstance(given, Mapping):
        yield from given.items()
        return
    for one in given:
        if not isinstance(one, Mapping) or "mount" not in one:
            raise _wrong(
                fleet,
                f"{one!r} has no mount",
                "give each entry of the list a mount: {mount: /data, claim: my-claim}",
            )
        yield str(one["mount"]), {key: value for key, value in one.items() if key != "mount"}


def _volume(fleet: Fleet, n: int, mount: str, given: Any) -> Volume:
    place = posixpath.normpath(str(mount))
    if not place.startswith("/") or place == "/" or ":" in place:
        raise _wrong(fleet, f"{mount!r} is not an absolute path")
    if posixpath.commonpath([place, HOME]) == HOME:
        raise _wrong(fleet, f"{mount} is used by hostler itself in a pod", "mount it elsewhere")
    told = {"claim": given} if isinstance(given, str) else dict(given) if isinstance(given, Mapping) else {}
    read_only = bool(told.pop("read_only", False))
    if len(told) != 1:
        raise _wrong(fleet, f"{mount}: {given!r} must have exactly one source")
    [(kind, value)] = told.items()
    source, lasts = _source(fleet, mount, str(kind), value)
    if read_only and "persistentVolumeClaim" in source:
        source = {"persistentVolumeClaim": {**source["persistentVolumeClaim"], "readOnly": True}}
    return Volume(f"volume-{n}", place, source, read_only, lasts)


def _source(fleet: Fleet, mount: str, kind: str, value: Any) -> tuple[Mapping[str, Any], bool]:
    """Source as Kubernetes writes it, and whether it outlives the pod."""
    if kind in ("claim", "pvc"):
        return {"persistentVolumeClaim": {"claimName": str(value)}}, True
    if kind == "host":
        return {"hostPath": {"path": str(value)}}, True
    if kind in ("empty", "memory"):
        return {"emptyDir": _scratch(fleet, mount, value, memory=kind == "memory")}, False
    if kind == "secret":
        return {"secret": {"secretName": str(value)}}, False
    if kind == "config_map":
        return {"configMap": {"name": str(value)}}, False
    if not isinstance(value, Mapping):
        raise _wrong(fleet, f"{mount}: {kind!r} is not a kind of volume")
    return {kind: dict(value)}, kind != "emptyDir"


def _scratch(fleet: Fleet, mount: str, value: Any, *, memory: bool) -> dict[str, Any]:
    record: dict[str, Any] = {"medium": "Memory"} if memory else {}
    if value in (True, None):
        return record
    try:
        return {**record, "sizeLimit": str(size(value))}
    except ValueError as error:
        raise _wrong(fleet, f"{mount}: {error}") from None


def _wrong(fleet: Fleet, message: str, hint: str = _HINT) -> UsageError:
    return UsageError(f"fleet {fleet.name}: volumes: {message}", hint=hint)
