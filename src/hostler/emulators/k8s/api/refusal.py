"""An API server's refusals: a Status, in the words of the real one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hostler.emulators.k8s.resources import Resource
from hostler.frozen import dataclass


@dataclass(frozen=True)
class Cause:
    """A field that is wrong."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"

    def body(self) -> dict[str, str]:
        return {"reason": self.reason, "message": self.message, "field": self.field}


class Refusal(Exception):
    def __init__(self, code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.details = code, reason, message, details

    def body(self) -> dict[str, Any]:
        record: dict[str, Any] = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        return record | ({"details": self.details} if self.details else {})


def not_found(resource: Resource, name: str) -> Refusal:
    return Refusal(404, "NotFound", f'{resource.full} "{name}" not found', _details(resource, name))


def no_such_path() -> Refusal:
    return Refusal(404, "NotFound", "the server could not find the requested resource", {})


def exists(resource: Resource, name: str) -> Refusal:
    text = f'{resource.full} "{name}" already exists'
    return Refusal(409, "AlreadyExists", text, _details(resource, name))


def conflict(resource: Resource, name: str) -> Refusal:
    text = (
        f'Operation cannot be fulfilled on {resource.full} "{name}": the object has been modified; please '
        "apply your changes to the latest version and try again"
    )
    return Refusal(409, "Conflict", text, _details(resource, name))


def conflicting_fields(found: Sequence[tuple[str, str]], api_version: str) -> Refusal:
    """Another manager has applied other values; each is (manager, field)."""
    one = f'conflict with "{found[0][0]}" using {api_version}: {found[0][1]}' if found else ""
    many = "\n".join(f'conflict with "{who}" using {api_version}:\n- {field}' for who, field in found)
    text = f"Apply failed with {len(found)} conflict{'s' if len(found) > 1 else ''}: "
    causes = [Cause(field, f'conflict with "{who}"', "FieldManagerConflict").body() for who, field in found]
    return Refusal(409, "Conflict", text + (one if len(found) == 1 else many), {"causes": causes})


def invalid(resource: Resource, name: str, causes: Sequence[Cause]) -> Refusal:
    lines = [f"{cause.field}: {cause.message}" for cause in causes]
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    details = {
        "name": name,
        "group": resource.group,
        "kind": resource.kind,
        "causes": [cause.body() for cause in causes],
    }
    return Refusal(422, "Invalid", f'{resource.full_kind} "{name}" is invalid: {text}', details)


def undecodable(resource: Resource, why: str) -> Refusal:
    text = f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}'
    return Refusal(400, "BadRequest", text)


def bad_request(why: str) -> Refusal:
    return Refusal(400, "BadRequest", why)


def forbidden(user: str, verb: str, resource: Resource, namespace: str, name: str, sub: str = "") -> Refusal:
    plural = f"{resource.plural}/{sub}" if sub else resource.plural
    place = f'in the namespace "{namespace}"' if namespace else "at the cluster scope"
    which = f'{resource.full} "{name}"' if name else resource.full
    text = (
        f'{which} is forbidden: User "{user}" cannot {verb} resource "{plural}" in API group '
        f'"{resource.group}" {place}'
    )
    return Refusal(403, "Forbidden", text, _details(resource, name))


def unauthorized() -> Refusal:
    return Refusal(401, "Unauthorized", "Unauthorized")


def too_old(asked: int, oldest: int) -> Refusal:
    return Refusal(410, "Expired", f"too old resource version: {asked} ({oldest})")


def wrong_method() -> Refusal:
    return Refusal(
        405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {}
    )


def _details(resource: Resource, name: str) -> dict[str, Any]:
    found = {"group": resource.group, "kind": resource.plural} | ({"name": name} if name else {})
    return {key: value for key, value in found.items() if value}
