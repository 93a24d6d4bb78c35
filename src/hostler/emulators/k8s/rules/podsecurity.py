"""Pod security of a namespace: the level `restricted`, enforced by its label, in Kubernetes' words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from hostler.emulators.k8s.storage import Obj

LABEL = "pod-security.kubernetes.io/enforce"
_VOLUMES = ("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected")
_PROFILES = ("RuntimeDefault", "Localhost")


def violations(namespace: Obj, pod: Obj) -> str:
    """Text of the refusal; '' if the namespace takes such pods."""
    if (namespace["metadata"].get("labels") or {}).get(LABEL) != "restricted":
        return ""
    found = ", ".join(_found(pod["spec"]))
    return f'violates PodSecurity "restricted:latest": {found}' if found else ""


def _found(spec: Mapping[str, Any]) -> Iterator[str]:
    containers = [*(spec.get("initContainers") or ()), *spec["containers"]]
    own = {container["name"]: container.get("securityContext") or {} for container in containers}
    whole = spec.get("securityContext") or {}
    if names := [name for name, held in own.items() if held.get("allowPrivilegeEscalation") is not False]:
        yield f"allowPrivilegeEscalation != false ({_must(names, 'allowPrivilegeEscalation=false')})"
    dropped = {name: (held.get("capabilities") or {}).get("drop") or () for name, held in own.items()}
    if names := [name for name, words in dropped.items() if "ALL" not in words]:
        text = _must(names, 'capabilities.drop=["ALL"]')
        yield f"unrestricted capabilities ({text})"
    for volume in spec.get("volumes") or ():
        if kind := next((word for word in volume if word not in ("name", "secret", *_VOLUMES)), ""):
            yield f'restricted volume types (volume "{volume["name"]}" uses restricted volume type "{kind}")'
    if names := [n for n, held in own.items() if not held.get("runAsNonRoot", whole.get("runAsNonRoot"))]:
        yield f"runAsNonRoot != true (pod or {_must(names, 'runAsNonRoot=true')})"
    profiles = {n: held.get("seccompProfile") or whole.get("seccompProfile") or {} for n, held in own.items()}
    if names := [name for name, held in profiles.items() if held.get("type") not in _PROFILES]:
        text = _must(names, 'seccompProfile.type to "RuntimeDefault" or "Localhost"')
        yield f"seccompProfile (pod or {text})"


def _must(names: list[str], what: str) -> str:
    which = ", ".join(f'"{name}"' for name in names)
    return f"container{'s' * (len(names) > 1)} {which} must set securityContext.{what}"
