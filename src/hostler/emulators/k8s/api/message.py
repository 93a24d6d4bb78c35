"""A request as the API sees it, and what goes back: a whole answer, or one that goes on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from hostler.emulators.k8s.api import protobuf
from hostler.emulators.k8s.api.refusal import Refusal, bad_request
from hostler.emulators.k8s.resources import Resource

JSON = "application/json"


@dataclass(frozen=True)
class Call:
    verb: str  # of the API: get, list, watch, create, update, patch, delete, deletecollection
    resource: Resource
    namespace: str
    name: str
    sub: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes
    user: str = ""

    def flag(self, name: str) -> bool:
        return self.query.get(name, "").lower() in ("true", "1")

    def number(self, name: str, default: int | None = None) -> int | None:
        """A parameter that is a whole number."""
        given = self.query.get(name)
        if not given:
            return default
        try:
            return int(given)
        except ValueError:
            raise bad_request(f'strconv.ParseInt: parsing "{given}": invalid syntax in {name}') from None

    def read(self) -> dict[str, Any]:
        """The object that was sent."""
        if not self.body.strip():
            return {}
        if self.body.startswith(protobuf.MAGIC):
            return protobuf.read(self.body)
        try:
            found = yaml.safe_load(self.body) if self._yaml() else json.loads(self.body)
        except (ValueError, yaml.YAMLError) as error:
            raise bad_request(f"the object provided is unrecognized: {error}") from None
        if not isinstance(found, dict):
            raise bad_request("the object provided is unrecognized: it is not a mapping")
        return found

    def _yaml(self) -> bool:
        return "yaml" in self.headers.get("content-type", "")


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=lambda: {"Content-Type": JSON})


@dataclass(frozen=True)
class Stream:
    """Pieces are sent as they come, until the end of them or of the client."""

    pieces: Iterator[bytes]
    kind: str = JSON


def as_json(thing: object, status: int = 200, warning: str = "") -> Answer:
    headers = {"Content-Type": JSON} | ({"Warning": f'299 - "{warning}"'} if warning else {})
    return Answer(status, json.dumps(thing).encode(), headers)


def refused(refusal: Refusal) -> Answer:
    return as_json(refusal.body(), refusal.code)
