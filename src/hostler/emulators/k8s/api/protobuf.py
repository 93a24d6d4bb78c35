"""Objects that kubectl writes in protobuf alone: those of `kubectl create secret`, `auth can-i` and `drain`.

Messages are described by tables: number of a field to its name and form.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from hostler.emulators.k8s.api.refusal import Refusal

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
        said = "the body of the request was in an unknown format - accepted media types include: "
        raise Refusal(415, "UnsupportedMediaType", f"{said}application/json, application/yaml")
    return {"apiVersion": version, "kind": kind, **_message(envelope.get(2, b""), KINDS[kind])}


def _message(data: bytes, known: Message) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for number, raw in _fields(data):
        field = known.get(number)
        if field is None or (not raw and field.form == "text" and not field.many):
            continue
        value = _value(raw, field)
        if field.many:
            found.setdefault(field.name, []).append(value)
        elif field.form in ("texts", "datas"):
            found.setdefault(field.name, {}).update(value)
        else:
            found[field.name] = value
    return found


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
    """What is in a message, with the fields' numbers; a number as its digits."""
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
