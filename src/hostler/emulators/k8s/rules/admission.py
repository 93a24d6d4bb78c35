"""From what a client sends to an object that may be stored: names, form, defaults, rules; or a refusal."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from typing import Any

from hostler.emulators.k8s.api.refusal import Refusal, bad_request, exists, invalid, not_found
from hostler.emulators.k8s.moment import stamp
from hostler.emulators.k8s.resources import ACCOUNTS, NAMESPACES, PODS, QUOTAS, Resource
from hostler.emulators.k8s.rules import defaults, rules, schema
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import World

LABEL = "pod-security.kubernetes.io/enforce"
_VOLUMES = ("configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected")
_PROFILES = ("RuntimeDefault", "Localhost")

_SERVERS = ("uid", "creationTimestamp", "resourceVersion", "generation", "deletionTimestamp", "selfLink")


def admit(world: World, resource: Resource, given: Obj, namespace: str = "") -> Obj:
    """A new object, not stored yet."""
    thing = copy.deepcopy(given)
    _identify(resource, thing, namespace)
    meta = thing["metadata"]
    schema.check(resource, thing)
    for word in (*_SERVERS, "managedFields"):
        meta.pop(word, None)
    if meta.get("generateName") and not meta.get("name"):
        meta["name"] = meta["generateName"] + world.suffix()
    causes = rules.name(resource, meta)
    if causes:
        raise invalid(resource, meta.get("name", ""), causes)
    _check_place(world, resource, meta.get("namespace", ""))
    meta |= {"uid": world.new_uid(), "creationTimestamp": stamp(world.clock())}
    causes = rules.early(thing)
    if not causes:
        defaults.fill(thing)
        causes = rules.check(thing)
    if causes:
        raise invalid(resource, meta["name"], causes)
    defaults.begin(thing)
    if world.storage.find(resource, meta.get("namespace", ""), meta["name"]) is not None:
        raise exists(resource, meta["name"])
    if resource == PODS:
        _check_account(world, thing)
        _check_security(world, thing)
        _check_quotas(world, thing)
    return thing


def _identify(resource: Resource, thing: Obj, namespace: str) -> None:
    """Kind and namespace, which a request gives by its path, too."""
    said = (thing.get("apiVersion", resource.api_version), thing.get("kind", resource.kind))
    if said != (resource.api_version, resource.kind):
        raise bad_request(
            f"the API version and kind in the data ({said[0]}, {said[1]}) do not match the expected "
            f"({resource.api_version}, {resource.kind})"
        )
    thing["apiVersion"], thing["kind"] = said
    meta = thing.setdefault("metadata", {})
    if not isinstance(meta, dict):
        raise bad_request("metadata is not a mapping")
    if not resource.namespaced:
        meta.pop("namespace", None)
        return
    if meta.setdefault("namespace", namespace) != namespace and namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )


def _check_place(world: World, resource: Resource, namespace: str) -> None:
    if not resource.namespaced:
        return
    place = world.storage.find(NAMESPACES, "", namespace)
    if place is None:
        raise not_found(NAMESPACES, namespace)
    if place["metadata"].get("deletionTimestamp"):
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise Refusal(403, "Forbidden", f"{resource.full} is forbidden: {why}")


def _check_account(world: World, pod: Obj) -> None:
    namespace, name = pod["metadata"]["namespace"], pod["spec"]["serviceAccountName"]
    if world.storage.find(ACCOUNTS, namespace, name) is None:
        pod_name = pod["metadata"]["name"]
        text = f'error looking up service account {namespace}/{name}: serviceaccount "{name}" not found'
        raise Refusal(403, "Forbidden", f'pods "{pod_name}" is forbidden: {text}')


def _check_security(world: World, pod: Obj) -> None:
    place = world.storage.find(NAMESPACES, "", pod["metadata"]["namespace"])
    if place is not None and (text := _violations(place, pod)):
        raise Refusal(403, "Forbidden", f'pods "{pod["metadata"]["name"]}" is forbidden: {text}')


def _check_quotas(world: World, pod: Obj) -> None:
    """Quotas of a namespace limit the number of its pods; other amounts are not counted here."""
    namespace, name = pod["metadata"]["namespace"], pod["metadata"]["name"]
    there = world.storage.all(PODS, namespace)
    used = sum(record["status"]["phase"] not in ("Succeeded", "Failed") for record in there)
    for quota in world.storage.all(QUOTAS, namespace):
        most = (quota["spec"].get("hard") or {}).get("pods")
        if most is not None and used + 1 > int(most):
            text = f"requested: pods=1, used: pods={used}, limited: pods={most}"
            which = quota["metadata"]["name"]
            raise Refusal(403, "Forbidden", f'pods "{name}" is forbidden: exceeded quota: {which}, {text}')


def _violations(namespace: Obj, pod: Obj) -> str:
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
