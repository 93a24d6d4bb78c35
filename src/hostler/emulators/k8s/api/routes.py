"""Which verb on which object a request means: pure over its first line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import unquote

from hostler.emulators.k8s.api.refusal import no_such_path, wrong_method
from hostler.emulators.k8s.resources import Resource, named

_ONE = {"GET": "get", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_MANY = {"GET": "list", "POST": "create", "DELETE": "deletecollection"}


@dataclass(frozen=True)
class Route:
    verb: str
    resource: Resource
    namespace: str = ""
    name: str = ""
    sub: str = ""


def route(method: str, path: str, query: Mapping[str, str]) -> Route | None:
    """None if it is not a path of objects at all."""
    parts = [unquote(part) for part in path.strip("/").split("/")]
    if parts[:2] == ["api", "v1"] and len(parts) > 2:
        return _objects(method, "", "v1", parts[2:], query)
    if parts[:1] == ["apis"] and len(parts) > 3:
        return _objects(method, parts[1], parts[2], parts[3:], query)
    return None


def _objects(method: str, group: str, version: str, parts: list[str], query: Mapping[str, str]) -> Route:
    namespace = ""
    if parts[0] == "namespaces" and len(parts) > 2 and named(group, version, parts[2]):
        namespace, parts = parts[1], parts[2:]
    resource = named(group, version, parts[0])
    if resource is None or len(parts) > 3 or (namespace and not resource.namespaced):
        raise no_such_path()
    name, sub = [*parts[1:], "", ""][:2]
    if sub and sub not in resource.subresources:
        raise no_such_path()
    verb = _verb(method, name, sub, query)
    if verb not in (*resource.verbs, "watch") or (verb == "create" and resource.namespaced and not namespace):
        raise wrong_method()
    return Route(verb, resource, namespace, name, sub)


def _verb(method: str, name: str, sub: str, query: Mapping[str, str]) -> str:
    if sub and method == "POST":
        return "create"
    verb = (_ONE if name else _MANY).get(method, "")
    watching = query.get("watch", "").lower() in ("true", "1")
    return "watch" if verb == "list" and watching else verb
