"""From a request to its answer: who asks, about which project, which method; then the method itself.

`requests` remembers everything that was asked and what was said.
"""

from __future__ import annotations

import copy
import json
import re
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from hostler.emulators.gce.api.call import Call
from hostler.emulators.gce.api.links import Scope
from hostler.emulators.gce.api.methods import methods
from hostler.emulators.gce.api.refusal import (
    Refusal,
    disabled,
    forbidden,
    invalid,
    not_found,
    unauthenticated,
    unsupported,
)
from hostler.emulators.gce.api.routes import Route, route
from hostler.emulators.gce.catalog import PUBLIC, REGIONS, ZONES
from hostler.emulators.gce.world import World
from hostler.emulators.gcs.message import Answer, Request, json_answer

_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


@dataclass(frozen=True)
class Seen:
    """A request and its answer, as JSON has them."""

    method: str  # of HTTP
    path: str
    query: dict[str, str]
    body: Any
    api: str  # instances.insert
    status: int
    answer: Any
    heard: bool = True  # whether the answer reached the client


@dataclass
class Gate:
    """Checks that a request must pass before its method."""

    strict: bool = False  # a token from a metadata server is needed
    refusing: bool = False  # whatever the token
    disabled: bool = False  # the API, in this project
    others: tuple[str, ...] = ("someone-elses",)  # projects that exist and are not ours


@dataclass
class Service:
    world: World
    gate: Gate = field(default_factory=Gate)
    requests: list[Seen] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._methods = methods()

    def answer(self, request: Request, at: Route) -> Answer:
        try:
            self._admit(request, at)
            return self._act(request, at)
        except Refusal as refusal:
            return refusal.answer()

    def remember(self, request: Request, at: Route, answer: Answer, *, heard: bool = True) -> None:
        asked, said = _loaded(request.body), _loaded(answer.body)
        path, query = unquote(request.path), dict(request.query)
        self.requests.append(Seen(request.method, path, query, asked, at.method, answer.status, said, heard))

    def _admit(self, request: Request, at: Route) -> None:
        token = request.headers.get("authorization", "")
        if self.gate.refusing or (self.gate.strict and not self.world.tokens.good(token)):
            raise unauthenticated()
        project = at.scope.project
        if project in PUBLIC and at.method.startswith("images."):
            return
        if project in self.gate.others:
            raise forbidden(f"compute.{at.method}", project)
        if project != self.world.project:
            raise not_found(f"projects/{project}")
        if self.gate.disabled:
            raise disabled(project)

    def _act(self, request: Request, at: Route) -> Answer:
        handler = self._methods.get(at.method)
        if handler is None:
            raise unsupported(f"{at.method or request.method} at {request.path}")
        _check_place(at.scope)
        call = Call(at.method, at.scope, at.name, request.query, _body(request))
        if call.verb == "wait":
            return json_answer(handler(self.world, call))
        with self.world.lock:
            return json_answer(copy.deepcopy(self._again(call) or handler(self.world, call)))

    def _again(self, call: Call) -> dict[str, Any] | None:
        """The earlier answer to this same request, as it stands now."""
        asked = call.query.get("requestId")
        if not asked:
            return None
        if not _UUID.fullmatch(asked):
            raise invalid("requestId", asked, "Must be a UUID.")
        operation = self.world.operations.asked(asked)
        return operation.body if operation else None


def locate(request: Request) -> Route | None:
    return route(request.method, request.path)


def _check_place(scope: Scope) -> None:
    known = {"zones": ZONES, "regions": tuple(REGIONS)}.get(scope.kind)
    if known is not None and scope.place not in known:
        raise not_found(scope.path)


def _body(request: Request) -> dict[str, Any]:
    found = _loaded(request.body)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise Refusal(400, "parseError", "Parse Error")
    return found


def _loaded(data: bytes) -> Any:
    try:
        return json.loads(data) if data else None
    except ValueError:
        return data.decode(errors="replace")
