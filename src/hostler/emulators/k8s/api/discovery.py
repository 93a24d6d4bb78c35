"""What clients ask before they ask for anything: versions, groups, resources, parameters."""

from __future__ import annotations

from typing import Any

from hostler.emulators.k8s.resources import GROUPS, RESOURCES, Resource

VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.0+stand-in", "platform": "linux/amd64"}
VERSION |= {"gitCommit": "", "gitTreeState": "clean", "buildDate": "", "goVersion": "", "compiler": ""}
_QUERY = ("fieldManager", "fieldValidation", "dryRun", "force")


def document(path: str) -> dict[str, Any] | None:
    """None if there is no such document."""
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
    found = [one for one in RESOURCES if one.api_version == version]
    if not found:
        return None
    listed = [entry for one in found for entry in _entries(one)]
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
    versions = {one.api_version: ("apis/" if one.group else "api/") + one.api_version for one in RESOURCES}
    if not version:
        return {"paths": {path: {"serverRelativeURL": f"/openapi/v3/{path}"} for path in versions.values()}}
    found = [one for one in RESOURCES if versions[one.api_version] == version]
    if not found:
        return None
    return {
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": VERSION["gitVersion"]},
        "paths": dict(_path(one, version) for one in found),
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
