"""HTTP of the stand-in: who asks, for what, and the answer or the stream of it."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from hostler.emulators.k8s.api.api import Api
from hostler.emulators.k8s.api.message import Answer, Call, Stream, as_json, refused
from hostler.emulators.k8s.api.refusal import Refusal, no_such_path, wrong_method
from hostler.emulators.k8s.resources import GROUPS, RESOURCES, Resource, named
from hostler.emulators.k8s.rules.access import Access
from hostler.emulators.serving import Handler, LoopbackServer
from hostler.frozen import dataclass


class Server(LoopbackServer):
    api: Api
    access: Access

    def __init__(self) -> None:
        super().__init__(_Handler)
        self.requests: list[tuple[str, str]] = []  # method and path with query, of everything that was asked

    def secure(self, context: ssl.SSLContext) -> None:
        """The handshake is each connection's own, so that a slow client keeps nobody waiting."""
        self.socket = context.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)


class _Handler(Handler):
    server: Server

    def answer(self) -> None:
        body = self.rfile.read(self.length())
        self.server.requests.append((self.command, self.path))
        try:
            reply = self._reply(body)
        except Refusal as refusal:
            reply = refused(refusal)
        if isinstance(reply, Stream):
            self._stream(reply)
        else:
            self.send(reply.status, reply.body, reply.headers)

    def _reply(self, body: bytes) -> Answer | Stream:
        path, query, headers = self.head()
        if path in ("/healthz", "/livez", "/readyz"):
            return Answer(200, b"ok", {"Content-Type": "text/plain"})
        user = self.server.access.user(headers)
        at = route(self.command, path, query)
        if at is None:
            record = document(path)
            if record is None:
                raise no_such_path()
            return as_json(record)
        call = Call(at.verb, at.resource, at.namespace, at.name, at.sub, query, headers, body, user)
        return self.server.api.answer(call)

    def _stream(self, stream: Stream) -> None:
        self.send_response(200)
        self.send_header("Content-Type", stream.kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()
        for piece in stream.pieces:
            self.wfile.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")


# Which verb on which object a request means: pure over its first line.


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


# What clients ask before they ask for anything: versions, groups, resources, parameters.


VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.0+stand-in", "platform": "linux/amd64"}
VERSION |= {"gitCommit": "", "gitTreeState": "clean", "buildDate": "", "goVersion": "", "compiler": ""}
_QUERY = ("fieldManager", "fieldValidation", "dryRun", "force")


def document(path: str) -> dict[str, Any] | None:
    """The document at the path; None if it does not exist."""
    parts = path.strip("/").split("/")
    if parts == ["version"]:
        return dict(VERSION)
    if parts == ["api"]:
        return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": []}
    if parts == ["apis"]:
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group(group) for group in GROUPS]}
    if parts[0] == "apis" and len(parts) == 2 and parts[1] in GROUPS:
        return {"kind": "APIGroup", "apiVersion": "v1", **_group(parts[1])}
    if parts[:2] == ["openapi", "v3"]:
        return _openapi("/".join(parts[2:]))
    return _resources("/".join(parts[1:])) if parts[0] in ("api", "apis") else None


def _group(group: str) -> dict[str, Any]:
    version = {"groupVersion": f"{group}/v1", "version": "v1"}
    return {"name": group, "versions": [version], "preferredVersion": version}


def _resources(version: str) -> dict[str, Any] | None:
    resources = [resource for resource in RESOURCES if resource.api_version == version]
    if not resources:
        return None
    listed = [entry for resource in resources for entry in _entries(resource)]
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": listed}


def _entries(one: Resource) -> list[dict[str, Any]]:
    main: dict[str, Any] = {
        "name": one.plural,
        "singularName": one.singular,
        "namespaced": one.namespaced,
        "kind": one.kind,
        "verbs": list(one.verbs),
    }
    main |= {"shortNames": list(one.short)} if one.short else {}
    main |= {"categories": ["all"]} if one.plural in ("pods", "services", "jobs") else {}
    verbs = {"log": ["get"], "eviction": ["create"]}
    return [main] + [
        {
            "name": f"{one.plural}/{sub}",
            "singularName": "",
            "namespaced": one.namespaced,
            "kind": kind,
            "verbs": verbs.get(sub, ["get", "patch", "update"]),
            **({"group": "policy", "version": "v1"} if sub == "eviction" else {}),
        }
        for sub, kind in one.subresources.items()
    ]


def _openapi(version: str) -> dict[str, Any] | None:
    """Enough for clients to see that the server checks fields itself, so that they need no schemas."""
    versions = {
        resource.api_version: ("apis/" if resource.group else "api/") + resource.api_version
        for resource in RESOURCES
    }
    if not version:
        return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in versions.values()}}
    resources = [resource for resource in RESOURCES if versions[resource.api_version] == version]
    if not resources:
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": dict(_path(resource, version) for resource in resources),
        "components": {"schemas": {}},
    }


def _path(one: Resource, version: str) -> tuple[str, dict[str, Any]]:
    place = "namespaces/{namespace}/" if one.namespaced else ""
    kind = {"group": one.group, "version": one.version, "kind": one.kind}
    parameters = [{"name": name, "in": "query", "schema": {"type": "string"}} for name in _QUERY]
    patch = {
        "x-kubernetes-action": "patch",
        "x-kubernetes-group-version-kind": kind,
        "parameters": parameters,
    }
    return f"/{version}/{place}{one.plural}/{{name}}", {
        "patch": patch | {"responses": {"200": {"description": "OK"}}}
    }
