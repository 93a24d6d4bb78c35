"""The variables of a container: plain ones, those from its pod, from Secrets and ConfigMaps, with `$(NAME)`.

Pure over the objects that it is given. What is missing is `Unready`, in the kubelet's words.
"""

from __future__ import annotations

import base64
import os
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hostler.emulators.k8s.rules.quantity import amount
from hostler.emulators.k8s.storage import Obj

Find = Callable[[str, str], "Obj | None"]  # kind ("Secret", "ConfigMap") and name, in the pod's namespace
_REFERENCE = re.compile(r"\$\$|\$\(([A-Za-z_.][A-Za-z0-9_.-]*)\)")
_ITEM = re.compile(r"metadata\.(labels|annotations)\['([^']+)'\]")


class Unready(Exception):
    """A container cannot be started yet; tried again later."""

    def __init__(self, message: str, reason: str = "CreateContainerConfigError") -> None:
        super().__init__(message)
        self.message, self.reason = message, reason


def variables(pod: Obj, container: Mapping[str, Any], image: Mapping[str, str], find: Find) -> dict[str, str]:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.defpath, "/usr/local/bin:/usr/sbin:/sbin"])
    record = {
        "PATH": path,
        "HOSTNAME": pod["spec"].get("hostname") or pod["metadata"]["name"],
        "HOME": "/root",
    }
    record |= image
    for source in container.get("envFrom") or []:
        record |= _whole(source, find)
    for entry in container.get("env") or []:
        value = _value(entry, pod, container, find)
        if value is not None:
            record[entry["name"]] = expand(value, record) if "value" in entry else value
    return record


def expand(text: str, known: Mapping[str, str]) -> str:
    """`$(NAME)` of a known variable becomes its value, `$$` a dollar."""

    def one(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return known.get(found[1], found[0])

    return _REFERENCE.sub(one, text)


def content(thing: Obj) -> dict[str, bytes]:
    """The content of a Secret or a ConfigMap."""
    data = thing.get("data") or {}
    if thing["kind"] == "Secret":
        return {key: base64.b64decode(value or "") for key, value in data.items()}
    binary = {key: base64.b64decode(value) for key, value in (thing.get("binaryData") or {}).items()}
    return {key: value.encode() for key, value in data.items()} | binary


def field(pod: Obj, path: str) -> str:
    """A fieldRef's value."""
    meta, spec, status = pod["metadata"], pod["spec"], pod.get("status", {})
    if match := _ITEM.fullmatch(path):
        return str((meta.get(match[1]) or {}).get(match[2], ""))
    known = {
        "metadata.name": meta["name"],
        "metadata.namespace": meta["namespace"],
        "metadata.uid": meta["uid"],
        "metadata.labels": _listed(meta.get("labels")),
        "metadata.annotations": _listed(meta.get("annotations")),
        "spec.nodeName": spec.get("nodeName", ""),
        "spec.serviceAccountName": spec.get("serviceAccountName", ""),
        "status.hostIP": status.get("hostIP", ""),
        "status.podIP": status.get("podIP", ""),
        "status.podIPs": status.get("podIP", ""),
        "status.hostIPs": status.get("hostIP", ""),
    }
    return str(known.get(path, ""))


def _listed(given: Mapping[str, str] | None) -> str:
    return "\n".join(f'{key}="{value}"' for key, value in sorted((given or {}).items()))


def _whole(source: Mapping[str, Any], find: Find) -> dict[str, str]:
    kind, word = ("Secret", "secretRef") if source.get("secretRef") else ("ConfigMap", "configMapRef")
    given = source.get(word) or {}
    thing = find(kind, given.get("name", ""))
    if thing is None:
        if given.get("optional"):
            return {}
        raise Unready(f'{kind.lower()} "{given.get("name")}" not found')
    return {
        source.get("prefix", "") + key: value.decode(errors="replace")
        for key, value in content(thing).items()
    }


def _value(entry: Mapping[str, Any], pod: Obj, container: Mapping[str, Any], find: Find) -> str | None:
    source = entry.get("valueFrom")
    if not source:
        return str(entry.get("value") or "")
    if source.get("fieldRef"):
        return field(pod, source["fieldRef"]["fieldPath"])
    if source.get("resourceFieldRef"):
        return _resource(source["resourceFieldRef"], container)
    kind, word = (
        ("Secret", "secretKeyRef") if source.get("secretKeyRef") else ("ConfigMap", "configMapKeyRef")
    )
    given = source.get(word) or {}
    thing = find(kind, given.get("name", ""))
    held = content(thing) if thing else {}
    if given["key"] in held:
        return held[given["key"]].decode(errors="replace")
    if given.get("optional"):
        return None
    if thing is None:
        raise Unready(f'{kind.lower()} "{given.get("name")}" not found')
    where = f"{pod['metadata']['namespace']}/{given.get('name')}"
    raise Unready(f"couldn't find key {given['key']} in {kind} {where}")


def _resource(given: Mapping[str, Any], container: Mapping[str, Any]) -> str:
    side, _, kind = given["resource"].partition(".")
    held = (container.get("resources") or {}).get(side) or {}
    value = amount(held.get(kind, 0)) / amount(given.get("divisor") or 1)
    return str(int(value.to_integral_value(rounding="ROUND_CEILING")))
