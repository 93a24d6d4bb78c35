"""The metadata server's side of the emulator: tokens, as a virtual machine's default account gets them.

A token is good until its life is over or all are expired at once; with the clock given, a test needs no
waiting. GCE_METADATA_HOST leads both obstore and Google's clients here.
"""

from __future__ import annotations

import re
import secrets
import threading
import time
from collections.abc import Callable
from urllib.parse import unquote

from hostler.emulators.gcs.message import Answer, Refusal, Request, json_answer

LIFE = 3600.0
_FLAVOR = {"Metadata-Flavor": "Google", "Server": "Metadata Server for VM"}
_EMAIL = "default@emulated.iam.gserviceaccount.com"
_ACCOUNT = re.compile(r"/computeMetadata/v1/instance/service-accounts/(?:default|[^/]+@[^/]+)/(\w*)")
_PLAIN = {
    "/": "computeMetadata/\n",
    "/computeMetadata/v1/project/project-id": "emulated",
    "/computeMetadata/v1/universe/universe-domain": "googleapis.com",
}


class Tokens:
    def __init__(self, *, life: float = LIFE, clock: Callable[[], float] = time.monotonic) -> None:
        self.issued = 0
        self._life = life
        self._clock = clock
        self._lock = threading.Lock()
        self._good: dict[str, float] = {}

    def issue(self) -> str:
        with self._lock:
            self.issued += 1
            token = secrets.token_hex(12)
            self._good[token] = self._clock() + self._life
            return token

    def good(self, authorization: str) -> bool:
        with self._lock:
            return self._good.get(authorization.removeprefix("Bearer "), 0.0) > self._clock()

    def expire(self) -> None:
        """Every token given so far is worthless from now on, though its holder thinks it good."""
        with self._lock:
            self._good.clear()

    def answer(self, request: Request) -> Answer:
        if request.path in _PLAIN:
            return Answer(200, _PLAIN[request.path].encode(), {"Content-Type": "text/plain", **_FLAVOR})
        if request.headers.get("metadata-flavor") != "Google":
            raise Refusal(403, "forbidden", "Forbidden", "Missing Metadata-Flavor:Google header.")
        match = _ACCOUNT.fullmatch(unquote(request.path))
        if match and match[1] == "token":
            content: dict[str, object] = {"access_token": self.issue(), "expires_in": int(self._life)}
            return _flavored({**content, "token_type": "Bearer"})
        if match and not match[1]:
            scopes = ["https://www.googleapis.com/auth/cloud-platform"]
            return _flavored({"aliases": ["default"], "email": _EMAIL, "scopes": scopes})
        if match and match[1] == "email":
            return Answer(200, _EMAIL.encode(), {"Content-Type": "text/plain", **_FLAVOR})
        raise Refusal(404, "notFound", "NotFound", f"no metadata at {request.path}")


def unauthenticated() -> Refusal:
    return Refusal(401, "authError", "AuthenticationRequired", "Invalid Credentials")


def _flavored(content: dict[str, object]) -> Answer:
    answer = json_answer(content)
    return Answer(answer.status, answer.body, {**answer.headers, **_FLAVOR})
