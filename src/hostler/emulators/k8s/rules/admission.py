"""From what a client sends to an object that may be stored: names, form, defaults, rules; or a refusal."""

from __future__ import annotations

import copy

from hostler.emulators.k8s.api.refusal import Refusal, bad_request, exists, invalid, not_found
from hostler.emulators.k8s.moment import stamp
from hostler.emulators.k8s.resources import ACCOUNTS, NAMESPACES, PODS, QUOTAS, Resource
from hostler.emulators.k8s.rules import defaults, podsecurity, rules, schema
from hostler.emulators.k8s.storage import Obj
from hostler.emulators.k8s.world import World

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
    if place is not None and (text := podsecurity.violations(place, pod)):
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
