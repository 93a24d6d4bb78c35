"""Google's Secret Manager, as far as launches use it: secrets, their versions, labels, an end; its refusals.

Like the real one it answers at once (it has no operations), tells errors as newer services of Google do,
and deletes by itself what has expired. `requests` remembers what was asked, without payloads: those are where
they were put, and nowhere else.
"""

from __future__ import annotations

import base64
import binascii
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any
from urllib.parse import unquote

from hostler.emulators.gcs.message import Answer, Request, json_answer

LARGEST = 64 * 1024
_PATH = re.compile(r"/v1/projects/([^/]+)/secrets(?:/([^/:]+)(?:/versions/(\w+))?)?(?::(\w+))?")
_ID = re.compile(r"[A-Za-z0-9_-]{1,255}")
_LABEL = re.compile(r"[a-z][a-z0-9_-]{0,62}")
_ENABLED = "ENABLED"
_WORDS = {400: "INVALID_ARGUMENT", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND"}
_WORDS |= {409: "ALREADY_EXISTS"}

Body = dict[str, Any]


class Refused(Exception):
    def __init__(self, status: int, said: str, reason: str = "") -> None:
        super().__init__(said)
        self.status, self.said, self.reason = status, said, reason

    def answer(self) -> Answer:
        error: Body = {
            "code": self.status,
            "message": self.said,
            "status": _WORDS.get(self.status, "UNKNOWN"),
        }
        if self.reason:
            kind = "type.googleapis.com/google.rpc.ErrorInfo"
            error["details"] = [{"@type": kind, "reason": self.reason, "domain": "googleapis.com"}]
        return json_answer({"error": error}, self.status)


@dataclass
class Secret:
    labels: dict[str, str]
    made: float
    expires: float | None
    versions: list[bytes] = field(default_factory=list)


@dataclass(frozen=True)
class SecretCall:
    """A request, and the status of its answer."""

    method: str  # of HTTP
    path: str
    query: dict[str, str]
    body: Any  # without the payload
    status: int


@dataclass
class SecretManager:
    """`good` says whether an Authorization header is; `clock` is the wall's."""

    project: str
    good: Callable[[str], bool]
    clock: Callable[[], float] = time.time
    disabled: bool = False  # the API, in this project
    denied: set[str] = field(
        default_factory=set
    )  # permissions that nobody has: secretmanager.versions.access
    secrets: dict[str, Secret] = field(default_factory=dict)
    requests: list[SecretCall] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def answer(self, request: Request) -> Answer:
        with self._lock:
            try:
                found = json_answer(self._act(request))
            except Refused as refused:
                found = refused.answer()
            body = request.json() if request.body else None
            shown = {key: value for key, value in body.items() if key != "payload"} if body else body
            asked = SecretCall(
                request.method, unquote(request.path), dict(request.query), shown, found.status
            )
            self.requests.append(asked)
            return found

    def _act(self, request: Request) -> Body:
        at = _PATH.fullmatch(unquote(request.path))
        if at is None:
            raise Refused(404, "Requested entity was not found.")
        project, name, version, verb = at.groups()
        self._admit(request, project)
        self._expire()
        if name is None:
            return self._create(request) if request.method == "POST" else self._list(request)
        if verb == "addVersion" and request.method == "POST":
            return self._add(name, request.json())
        if version is not None and verb == "access" and request.method == "GET":
            return self._access(name, version)
        if request.method == "DELETE" and version is None:
            return self._delete(name)
        if request.method == "GET" and version is None and verb is None:
            return self._body(name, self._secret(name, "secretmanager.secrets.get"))
        raise Refused(404, f"the emulator does not know {request.method} {request.path}")

    def _admit(self, request: Request, project: str) -> None:
        if not self.good(request.headers.get("authorization", "")):
            raise Refused(401, "Request had invalid authentication credentials.")
        if project != self.project:
            raise Refused(403, f"Permission denied on resource project {project}.", "CONSUMER_INVALID")
        if self.disabled:
            raise Refused(
                403,
                f"Secret Manager API has not been used in project {project} before or it is disabled.",
                "SERVICE_DISABLED",
            )

    def _may(self, permission: str, resource: str) -> None:
        if permission in self.denied:
            text = f"Permission '{permission}' denied for resource '{resource}' (or it may not exist)."
            raise Refused(403, text, "IAM_PERMISSION_DENIED")

    def _expire(self) -> None:
        now = self.clock()
        for name in [
            n for n, secret in self.secrets.items() if secret.expires is not None and secret.expires <= now
        ]:
            del self.secrets[name]

    def _create(self, request: Request) -> Body:
        self._may("secretmanager.secrets.create", f"projects/{self.project}")
        name, body = request.query.get("secretId", ""), request.json()
        if not _ID.fullmatch(name):
            raise Refused(400, f"The provided Secret ID [{name}] does not match the expected format.")
        if "automatic" not in (body.get("replication") or {}):
            raise Refused(400, "A replication policy must be provided.")
        labels = dict(body.get("labels") or {})
        if not all(map(_LABEL.fullmatch, labels)):
            raise Refused(400, "Invalid labels.")
        if name in self.secrets:
            raise Refused(409, f"Secret [{self._path(name)}] already exists.")
        ends = _moment(body["expireTime"]) if "expireTime" in body else None
        if ends is not None and ends <= self.clock():
            raise Refused(400, "The expiration time must be in the future.")
        self.secrets[name] = Secret(labels, self.clock(), ends)
        return self._body(name, self.secrets[name])

    def _list(self, request: Request) -> Body:
        self._may("secretmanager.secrets.list", f"projects/{self.project}")
        asked = request.query.get("filter", "")
        if asked and not asked.startswith("name:"):
            raise Refused(400, f"the emulator does not know the filter {asked}")
        part = asked.removeprefix("name:")
        found = [name for name in sorted(self.secrets) if part in self._path(name)]
        size = min(int(request.query.get("pageSize") or 25000), 25000)
        start = int(request.query.get("pageToken") or 0)
        page = [self._body(name, self.secrets[name]) for name in found[start : start + size]]
        more = {"nextPageToken": str(start + size)} if start + size < len(found) else {}
        return {"secrets": page, "totalSize": len(found), **more}

    def _add(self, name: str, body: Body) -> Body:
        secret = self._secret(name, "secretmanager.versions.add")
        try:
            payload = body["payload"]
            value = base64.b64decode(payload["data"], validate=True)
        except (KeyError, TypeError, binascii.Error):
            raise Refused(400, "Invalid payload.") from None
        if not 0 < len(value) <= LARGEST:
            raise Refused(400, f"The payload must have 1 to {LARGEST} bytes.")
        if "dataCrc32c" in payload and int(payload["dataCrc32c"]) != _crc32c(value):
            raise Refused(400, "The payload's checksum does not match.")
        secret.versions.append(value)
        number = len(secret.versions)
        path = f"{self._path(name)}/versions/{number}"
        return {"name": path, "createTime": _stamp(self.clock()), "state": _ENABLED, "etag": f'"{number}"'}

    def _access(self, name: str, version: str) -> Body:
        secret = self._secret(name, "secretmanager.versions.access")
        number = len(secret.versions) if version == "latest" else int(version)
        if not 0 < number <= len(secret.versions):
            raise Refused(404, f"Secret Version [{self._path(name)}/versions/{version}] not found.")
        value = secret.versions[number - 1]
        payload = {"data": base64.b64encode(value).decode(), "dataCrc32c": str(_crc32c(value))}
        return {"name": f"{self._path(name)}/versions/{number}", "payload": payload}

    def _delete(self, name: str) -> Body:
        self._secret(name, "secretmanager.secrets.delete")
        del self.secrets[name]
        return {}

    def _secret(self, name: str, permission: str) -> Secret:
        self._may(permission, self._path(name))
        if name not in self.secrets:
            raise Refused(404, f"Secret [{self._path(name)}] not found.")
        return self.secrets[name]

    def _body(self, name: str, secret: Secret) -> Body:
        ends = {"expireTime": _stamp(secret.expires)} if secret.expires is not None else {}
        kept = {"replication": {"automatic": {}}, "labels": secret.labels, **ends}
        return {"name": self._path(name), "createTime": _stamp(secret.made), "etag": '"1"', **kept}

    def _path(self, name: str) -> str:
        return f"projects/{self.project}/secrets/{name}"


def _moment(text: str) -> float:
    try:
        return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()
    except ValueError:
        raise Refused(400, f"Invalid time: {text}") from None


def _stamp(moment: float) -> str:
    return datetime.fromtimestamp(moment, timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _crc32c(data: bytes) -> int:
    """Bit by bit: the emulator shares no code with what it judges."""
    total = 0xFFFFFFFF
    for byte in data:
        total ^= byte
        for _ in range(8):
            total = (total >> 1) ^ (0x82F63B78 & -(total & 1))
    return total ^ 0xFFFFFFFF
