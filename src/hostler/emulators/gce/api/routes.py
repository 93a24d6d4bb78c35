"""Maps a request to a method of Google's document and its resource. Pure over its first line."""

from __future__ import annotations

import re
from urllib.parse import unquote

from hostler.emulators.gce.api.links import Scope
from hostler.frozen import dataclass

_START = re.compile(r"(?:/compute/v1)?/projects/([^/]+)(?:/(.*))?")
_REGIONAL = {"instanceGroupManagers", "instanceGroups", "instanceTemplates", "disks"}
_SHORT = {"zones": "zone", "regions": "region", "global": "global"}
_VERBS = {"serialPort": "getSerialPortOutput"}


@dataclass(frozen=True)
class Route:
    method: str  # instances.insert; empty if there is none such
    scope: Scope
    name: str = ""


def route(verb: str, path: str) -> Route | None:
    """None if it is not a path of the API at all."""
    match = _START.fullmatch(path)
    if not match:
        return None
    project = unquote(match[1])
    parts = [unquote(part) for part in (match[2] or "").split("/") if part]
    whole = Scope(project, "global")
    if not parts:
        return Route("projects.get" if verb == "GET" else "", whole)
    if parts[0] == "aggregated" and len(parts) == 2:
        return Route(f"{_collection(whole, parts[1])}.aggregatedList", whole)
    if parts[0] in ("zones", "regions"):
        return _in_place(verb, project, parts)
    return _of(verb, whole, parts[1:]) if parts[0] == "global" else Route("", whole)


def _in_place(verb: str, project: str, parts: list[str]) -> Route:
    if len(parts) == 1:
        return Route(f"{parts[0]}.list", Scope(project, "global"))
    scope = Scope(project, parts[0], parts[1])
    return _of(verb, scope, parts[2:]) if len(parts) > 2 else Route(f"{parts[0]}.get", scope)


def _of(verb: str, scope: Scope, parts: list[str]) -> Route:
    if not parts:
        return Route("", scope)
    collection = _collection(scope, parts[0])
    if len(parts) == 1:
        return Route(f"{collection}.{ {'GET': 'list', 'POST': 'insert'}.get(verb, '') }", scope)
    if parts[:2] == ["images", "family"] and len(parts) == 3:
        return Route("images.getFromFamily", scope, parts[2])
    if parts[0] == "advice":
        return Route(f"advice.{parts[1]}", scope)
    if len(parts) == 2:
        plain = {"GET": "get", "DELETE": "delete", "PATCH": "patch", "PUT": "update"}
        return Route(f"{collection}.{plain.get(verb, '')}", scope, parts[1])
    return Route(f"{collection}.{_VERBS.get(parts[2], parts[2])}", scope, parts[1])


def _collection(scope: Scope, name: str) -> str:
    if name == "operations":
        return f"{_SHORT[scope.kind]}Operations"
    if scope.kind == "regions" and name in _REGIONAL:
        return f"region{name[0].upper()}{name[1:]}"
    return name
