"""Compute Engine's refusals: at once, or in the operation that failed.

`Refusal` is an answer to a request. `Failure` ends an operation: most of what can go wrong with a machine
is known only then.
"""

from __future__ import annotations

import re
from dataclasses import field
from typing import Any

from hostler.emulators.gcs.message import Answer, json_answer
from hostler.frozen import dataclass

_HTTP = {400: "BAD REQUEST", 403: "FORBIDDEN", 404: "NOT FOUND", 409: "CONFLICT", 503: "SERVICE UNAVAILABLE"}
_CONSOLE = "https://console.developers.google.com/apis/api/compute.googleapis.com/overview?project="


class Refusal(Exception):
    def __init__(
        self, code: int, reason: str, message: str, *, domain: str = "global", status: str = ""
    ) -> None:
        super().__init__(message)
        self.code, self.reason, self.message, self.domain, self.status = code, reason, message, domain, status

    @property
    def constant(self) -> str:
        """Its reason as operations name it: notFound is NOT_FOUND."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", self.reason).upper()

    def answer(self) -> Answer:
        one = {"message": self.message, "domain": self.domain, "reason": self.reason}
        error: dict[str, object] = {"code": self.code, "message": self.message, "errors": [one]}
        return json_answer({"error": error | ({"status": self.status} if self.status else {})}, self.code)


@dataclass(frozen=True)
class Failure:
    """Why an operation came to nothing."""

    code: str
    message: str
    status: int = 400
    details: tuple[dict[str, Any], ...] = field(default=())

    def body(self) -> dict[str, Any]:
        """The fields of the operation that tell it."""
        record: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.details:
            record["errorDetails"] = list(self.details)
        text = _HTTP.get(self.status, "INTERNAL ERROR")
        return {
            "error": {"errors": [record]},
            "httpErrorStatusCode": self.status,
            "httpErrorMessage": text,
        }


def not_found(path: str) -> Refusal:
    return Refusal(404, "notFound", f"The resource '{path}' was not found")


def exists(path: str) -> Refusal:
    return Refusal(409, "alreadyExists", f"The resource '{path}' already exists")


def invalid(field: str, value: object, why: str = "") -> Refusal:
    return Refusal(400, "invalid", f"Invalid value for field '{field}': '{value}'. {why}".rstrip())


def required(field: str) -> Refusal:
    return Refusal(400, "required", f"Required field '{field}' not specified")


def in_use(what: str, path: str, by: str) -> Refusal:
    text = f"The {what} resource '{path}' is already being used by '{by}'"
    return Refusal(400, "resourceInUseByAnotherResource", text)


def stale(what: str) -> Refusal:
    return Refusal(
        412, "conditionNotMet", f"{what} fingerprint either invalid or resource labels have changed"
    )


def forbidden(permission: str, project: str) -> Refusal:
    text = f"Required '{permission}' permission for 'projects/{project}'"
    return Refusal(403, "forbidden", text, status="PERMISSION_DENIED")


def disabled(project: str) -> Refusal:
    text = (
        f"Compute Engine API has not been used in project {project} before or it is disabled. Enable it by "
        f"visiting {_CONSOLE}{project} then retry."
    )
    return Refusal(403, "accessNotConfigured", text, domain="usageLimits", status="PERMISSION_DENIED")


def unauthenticated() -> Refusal:
    text = (
        "Request had invalid authentication credentials. Expected OAuth 2 access token, login cookie or "
        "other valid authentication credential."
    )
    return Refusal(401, "authError", text, status="UNAUTHENTICATED")


def ordered(status: int) -> Refusal | None:
    """A refusal that somebody asked for by its status; None for those that only ask to wait."""
    reasons = {400: "invalid", 401: "authError", 403: "forbidden", 404: "notFound", 409: "alreadyExists"}
    return (
        Refusal(status, reasons[status], "The emulator was told to refuse it.") if status in reasons else None
    )


def unsupported(what: str) -> Refusal:
    """Refuse what the emulator cannot do; ignoring it would make a wrong test pass."""
    return Refusal(501, "notImplemented", f"the emulator does not know {what}")
