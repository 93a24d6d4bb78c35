"""An HTTP request, its answer, and the refusals of both APIs, as data.

A refusal carries the JSON API's reason and the XML API's code, because each client looks at its own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import field
from typing import Any
from xml.sax.saxutils import escape

from hostler.frozen import dataclass


@dataclass(frozen=True)
class Request:
    method: str
    path: str  # as it was sent, still quoted
    query: Mapping[str, str]
    headers: Mapping[str, str]  # names in lower case
    body: bytes = b""

    @property
    def base(self) -> str:
        """The emulator's address as the client wrote it."""
        return f"http://{self.headers.get('host', '')}"

    def json(self) -> dict[str, Any]:
        try:
            found = json.loads(self.body or b"{}")
        except ValueError:
            raise bad_request("the body is not JSON") from None
        if not isinstance(found, dict):
            raise bad_request("the body is not a JSON object")
        return found


@dataclass(frozen=True)
class Answer:
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


class Refusal(Exception):
    """An answer other than success."""

    def __init__(self, status: int, reason: str, code: str, message: str) -> None:
        super().__init__(message)
        self.status, self.reason, self.code, self.message = status, reason, code, message

    def as_json(self) -> Answer:
        one = {"message": self.message, "domain": "global", "reason": self.reason}
        error = {"code": self.status, "message": self.message, "errors": [one]}
        return json_answer({"error": error}, self.status)

    def as_xml(self) -> Answer:
        text = f"<Error><Code>{self.code}</Code><Message>{escape(self.message)}</Message></Error>"
        return xml_answer(text, self.status)


def json_answer(content: Mapping[str, Any], status: int = 200) -> Answer:
    kind = {"Content-Type": "application/json; charset=UTF-8"}
    return Answer(status, json.dumps(content).encode(), kind)


def xml_answer(text: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    kind = {"Content-Type": "application/xml; charset=UTF-8", **(headers or {})}
    return Answer(status, f"<?xml version='1.0' encoding='UTF-8'?>{text}".encode(), kind)


def no_bucket() -> Refusal:
    return Refusal(404, "notFound", "NoSuchBucket", "The specified bucket does not exist.")


def no_object(bucket: str, name: str) -> Refusal:
    return Refusal(404, "notFound", "NoSuchKey", f"No such object: {bucket}/{name}")


def no_upload() -> Refusal:
    return Refusal(404, "notFound", "NoSuchUpload", "The requested upload was not found.")


def condition_failed() -> Refusal:
    text = "At least one of the pre-conditions you specified did not hold."
    return Refusal(412, "conditionNotMet", "PreconditionFailed", text)


def not_modified() -> Refusal:
    return Refusal(304, "notModified", "NotModified", "")


def conflict(code: str, message: str) -> Refusal:
    return Refusal(409, "conflict", code, message)


def bad_request(message: str) -> Refusal:
    return Refusal(400, "invalid", "InvalidArgument", message)


def unsupported(what: str) -> Refusal:
    """Refuse what the emulator cannot do; ignoring it would make a wrong test pass."""
    return Refusal(501, "notImplemented", "NotImplemented", f"the emulator does not know {what}")
