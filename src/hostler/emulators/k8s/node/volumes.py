"""Volumes of a pod as folders, and which folder each path of a container is."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from hostler.emulators.k8s.node.environment import Find, Unready, content, field
from hostler.emulators.k8s.storage import Obj

PRIVATE = ("/tmp", "/root")  # of each container; all else that no volume covers is the machine's
_FOLDERS = ("", "Directory", "DirectoryOrCreate")


def prepare(pod: Obj, folder: Path, claims: Path, find: Find) -> dict[str, Path]:
    """The folder or file of each volume, by the volume's name. `find` has tokens, too, by their account."""
    places = {}
    for volume in pod["spec"].get("volumes") or []:
        name = volume["name"]
        try:
            places[name] = _place(volume, pod, folder / "volumes" / name, claims, find)
        except Unready as error:
            raise Unready(f'MountVolume.SetUp failed for volume "{name}" : {error.message}', "") from None
    return places


def mounts(
    container: Mapping[str, Any], places: Mapping[str, Path], folder: Path, hosts: Path
) -> list[dict[str, Any]]:
    """Mounts and their places, in the order to make them."""
    rows: list[dict[str, Any]] = []
    for path in PRIVATE:
        own = folder / "private" / path.strip("/")
        own.mkdir(parents=True, exist_ok=True)
        rows.append({"source": str(own), "target": path})
    rows += _interpreter()
    rows.append({"source": str(hosts), "target": "/etc/hosts"})
    wanted = [_mount(one, places[one["name"]]) for one in container.get("volumeMounts") or []]
    return rows + sorted(wanted, key=lambda one: str(one["target"]).count("/"))


def _mount(given: Mapping[str, Any], place: Path) -> dict[str, Any]:
    source = place / given["subPath"] if given.get("subPath") else place
    if given.get("subPath") and not source.exists():
        source.mkdir(parents=True)
    return {"source": str(source), "target": given["mountPath"], "read_only": bool(given.get("readOnly"))}


def _interpreter() -> list[dict[str, Any]]:
    """Python is what every image has: where it lies in a private folder, it is there all the same."""
    prefixes = dict.fromkeys([sys.base_prefix, sys.prefix])
    return [
        {"source": prefix, "target": prefix, "read_only": True}
        for prefix in prefixes
        if any(Path(prefix).is_relative_to(private) for private in PRIVATE)
    ]


def _place(volume: Mapping[str, Any], pod: Obj, own: Path, claims: Path, find: Find) -> Path:
    if volume.get("hostPath"):
        return _of_node(volume["hostPath"])
    if volume.get("persistentVolumeClaim"):
        own = claims / pod["metadata"]["namespace"] / volume["persistentVolumeClaim"]["claimName"]
    elif "emptyDir" not in volume:
        own.mkdir(parents=True, exist_ok=True)
        _fill(own, volume, pod, find)
    own.mkdir(parents=True, exist_ok=True)
    return own


def _of_node(given: Mapping[str, Any]) -> Path:
    path, kind = Path(given["path"]), given.get("type") or ""
    if kind == "DirectoryOrCreate":
        path.mkdir(parents=True, exist_ok=True)
    if kind == "FileOrCreate" and not path.exists():
        path.touch()
    if not path.exists():
        raise Unready(
            f"hostPath type check failed: {path} is not a {'directory' if kind in _FOLDERS else 'file'}"
        )
    return path


def _fill(own: Path, source: Mapping[str, Any], pod: Obj, find: Find) -> None:
    known = {"name", "secret", "configMap", "downwardAPI", "projected", "serviceAccountToken"}
    if strange := [word for word in source if word not in known]:
        raise Unready(f"the stand-in knows no volumes of type {strange[0]}")
    for part in (source.get("projected") or {}).get("sources") or []:
        _fill(own, part, pod, find)
    for entry in (source.get("downwardAPI") or {}).get("items") or []:
        _write(own, entry["path"], field(pod, entry["fieldRef"]["fieldPath"]).encode(), 0o644)
    if service_account_token := source.get("serviceAccountToken"):
        token = find("Token", pod["spec"]["serviceAccountName"])
        _write(
            own, service_account_token["path"], content(token or {"kind": "Token"}).get("token", b""), 0o644
        )
    for kind, word in (("Secret", "secret"), ("ConfigMap", "configMap")):
        if source.get(word) is not None:
            _files(own, kind, source[word], find)


def _files(own: Path, kind: str, given: Mapping[str, Any], find: Find) -> None:
    name = given.get("secretName") or given.get("name") or ""
    thing = find(kind, name)
    if thing is None:
        if given.get("optional"):
            return
        raise Unready(f'{kind.lower()} "{name}" not found')
    held, mode = content(thing), given.get("defaultMode") or 0o644
    chosen = given.get("items") or [{"key": key, "path": key} for key in held]
    for item in chosen:
        if item["key"] not in held and not given.get("optional"):
            raise Unready(f"references non-existent {kind.lower()} key: {item['key']}")
        _write(own, item["path"], held[item["key"]], item.get("mode") or mode)


def _write(own: Path, path: str, body: bytes, mode: int) -> None:
    file = own / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(body)
    file.chmod(mode)
