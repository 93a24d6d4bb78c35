"""A request as the API sees it, and what goes back: a whole answer, or one that goes on."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

import yaml

from hostler.emulators.k8s.api.refusal import Refusal, bad_request
from hostler.emulators.k8s.resources import Resource
from hostler.frozen import dataclass

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
        if self.body.startswith(MAGIC):
            return read(self.body)
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


# Objects that kubectl writes in protobuf alone: those of `kubectl create secret`, `auth can-i` and `drain`.
#
# Messages are described by tables: number of a field to its name and form.


MAGIC = b"k8s\x00"


@dataclass(frozen=True)
class Field:
    name: str
    form: str = "text"  # or number; or texts, datas: mappings to text, and to bytes
    inside: Mapping[int, Field] | None = None
    many: bool = False


Message = Mapping[int, Field]
_META: Message = {
    1: Field("name"),
    2: Field("generateName"),
    3: Field("namespace"),
    11: Field("labels", "texts"),
    12: Field("annotations", "texts"),
}
_RULE: Message = {
    1: Field("verbs", many=True),
    2: Field("apiGroups", many=True),
    3: Field("resources", many=True),
    4: Field("resourceNames", many=True),
}
_SUBJECT: Message = {1: Field("kind"), 2: Field("apiGroup"), 3: Field("name"), 4: Field("namespace")}
_REFERENCE: Message = {1: Field("apiGroup"), 2: Field("kind"), 3: Field("name")}
_ASKED: Message = {
    number: Field(name)
    for number, name in enumerate(
        ("namespace", "verb", "group", "version", "resource", "subresource", "name"), 1
    )
}
_REVIEW: Message = {1: Field("resourceAttributes", inside=_ASKED)}
_DELETION: Message = {
    1: Field("gracePeriodSeconds", "number"),
    2: Field("preconditions", inside={1: Field("uid")}),
    4: Field("propagationPolicy"),
}
_HEAD: Message = {1: Field("metadata", inside=_META)}
KINDS: Mapping[str, Message] = {
    "Namespace": _HEAD,
    "DeleteOptions": _DELETION,
    "Eviction": {**_HEAD, 2: Field("deleteOptions", inside=_DELETION)},
    "ServiceAccount": _HEAD,
    "Secret": {**_HEAD, 2: Field("data", "datas"), 3: Field("type"), 4: Field("stringData", "texts")},
    "ConfigMap": {**_HEAD, 2: Field("data", "texts"), 3: Field("binaryData", "datas")},
    "Role": {**_HEAD, 2: Field("rules", inside=_RULE, many=True)},
    "RoleBinding": {
        **_HEAD,
        2: Field("subjects", inside=_SUBJECT, many=True),
        3: Field("roleRef", inside=_REFERENCE),
    },
    "SelfSubjectAccessReview": {**_HEAD, 2: Field("spec", inside=_REVIEW)},
}


def read(body: bytes) -> dict[str, Any]:
    """The object, as JSON would have it."""
    envelope = dict(_fields(body.removeprefix(MAGIC)))
    named = dict(_fields(envelope.get(1, b"")))
    kind, version = named.get(2, b"").decode(), named.get(1, b"").decode()
    if kind not in KINDS:
        text = "the body of the request was in an unknown format - accepted media types include: "
        raise Refusal(415, "UnsupportedMediaType", f"{text}application/json, application/yaml")
    return {"apiVersion": version, "kind": kind, **_message(envelope.get(2, b""), KINDS[kind])}


def _message(data: bytes, known: Message) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for number, raw in _fields(data):
        field = known.get(number)
        if field is None or (not raw and field.form == "text" and not field.many):
            continue
        value = _value(raw, field)
        if field.many:
            record.setdefault(field.name, []).append(value)
        elif field.form in ("texts", "datas"):
            record.setdefault(field.name, {}).update(value)
        else:
            record[field.name] = value
    return record


def _value(raw: bytes, field: Field) -> Any:
    if field.inside is not None:
        return _message(raw, field.inside)
    if field.form in ("texts", "datas"):
        pair = dict(_fields(raw))
        held = pair.get(2, b"")
        text = base64.b64encode(held).decode() if field.form == "datas" else held.decode()
        return {pair.get(1, b"").decode(): text}
    return int(raw) if field.form == "number" else raw.decode()


def _fields(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Fields of a message with their numbers; a number as its digits."""
    at = 0
    while at < len(data):
        tag, at = _number(data, at)
        kind = tag & 7
        if kind == 0:
            value, at = _number(data, at)
            yield tag >> 3, str(value).encode()
        elif kind == 2:
            size, at = _number(data, at)
            yield tag >> 3, data[at : at + size]
            at += size
        else:
            at += 8 if kind == 1 else 4


def _number(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
