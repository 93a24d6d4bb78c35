"""Rules that no schema holds: enumerations, names, fields that need or forbid each other. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from hostler.emulators.k8s.api.refusal import Cause
from hostler.emulators.k8s.resources import Resource
from hostler.emulators.k8s.rules import jobrules, podrules
from hostler.emulators.k8s.rules.wrong import invalid, required
from hostler.emulators.k8s.storage import Obj

_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PART = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_SAID = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)
_LABEL_SAID = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used "
    "for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)


def name(resource: Resource, meta: Mapping[str, Any]) -> list[Cause]:
    given = meta.get("name")
    if not given:
        return [required("metadata.name", "name or generateName is required")]
    if resource.group == "rbac.authorization.k8s.io":
        return []
    if len(given) > 253:
        return [invalid("metadata.name", given, "must be no more than 253 bytes")]
    if not _SUBDOMAIN.fullmatch(given):
        return [invalid("metadata.name", given, _SAID)]
    if resource.plural in ("namespaces", "services") and (len(given) > 63 or not _LABEL.fullmatch(given)):
        return [invalid("metadata.name", given, "must be no more than 63 characters, without dots")]
    return labels(meta.get("labels"), "metadata.labels")


def early(thing: Obj) -> list[Cause]:
    """Before anything is filled in."""
    if thing["kind"] in ("Job", "Pod") and not isinstance(thing.get("spec"), dict):
        return [required("spec")]
    return jobrules.early(thing["spec"]) if thing["kind"] == "Job" else []


def check(thing: Obj) -> list[Cause]:
    if thing["kind"] == "Pod":
        return podrules.check(thing["spec"], "spec")
    if thing["kind"] == "Job":
        found = jobrules.check(thing)
        template = thing["spec"]["template"]
        found += labels((template.get("metadata") or {}).get("labels"), "spec.template.metadata.labels")
        return found + podrules.check(template.get("spec") or {}, "spec.template.spec")
    return []


def labels(given: Mapping[str, Any] | None, field: str) -> list[Cause]:
    found = []
    for key, value in (given or {}).items():
        if len(str(value)) > 63:
            found.append(invalid(field, value, "must be no more than 63 bytes"))
        elif not _PART.fullmatch(str(value)):
            found.append(invalid(field, value, _LABEL_SAID))
        if not _PART.fullmatch(key.rpartition("/")[2]) or not key.rpartition("/")[2]:
            found.append(
                invalid(field, key, "name part must consist of alphanumeric characters, '-', '_' or '.'")
            )
    return found
