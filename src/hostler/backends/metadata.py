"""Google's metadata server, which tells a VM its name, its token, its preemption, and a pod its token.

Standard library only: workers and first programs use it. No proxy knows this address, so none is asked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode
from urllib.request import Request

from hostler.backends.fetch import fetch, open_url
from hostler.env import metadata_server

METADATA_HOST = "metadata.google.internal"
ANSWER = 30.0  # seconds for one answer
EARLY = 60.0  # seconds before its end that a token is replaced
TOKEN = "instance/service-accounts/default/token"
GUEST = "instance/guest-attributes/hostler/"


def get_metadata(path: str) -> str:
    """The value at `path`; asked again if the server does not answer for a moment."""
    return fetch(_request(path), timeout=ANSWER, proxies=False).decode()


def get_attribute(name: str) -> Any:
    """A value that came with the VM, as JSON."""
    return json.loads(get_metadata(f"instance/attributes/{name}"))


def watch_metadata(path: str, since: str, timeout: float) -> tuple[str, str]:
    """The value once it is another than `since` marks, or after `timeout`; and its mark."""
    query = {"wait_for_change": "true", "timeout_sec": str(int(timeout)), "last_etag": since}
    request = _request(f"{path}?{urlencode(query)}")
    with open_url(request, timeout + ANSWER, proxies=False) as answer:
        return answer.read().decode(), answer.headers.get("ETag") or ""


def put_guest_attribute(name: str, value: str) -> None:
    """Write an attribute that whoever may see the VM can read."""
    fetch(_request(GUEST + name, value.encode()), timeout=ANSWER, proxies=False)


def get_token() -> str:
    """A token of this machine's account."""
    return _told_token()[0]


class Token:
    """The account's token, asked for again before it ends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._value, self._until = "", 0.0

    def __call__(self) -> str:
        if self._clock() >= self._until:
            self._value, seconds = _told_token()
            self._until = self._clock() + seconds - EARLY
        return self._value


def _told_token() -> tuple[str, float]:
    """The token and how long it lasts; ConnectionError if what answers is not the metadata server."""
    try:
        found = json.loads(get_metadata(TOKEN))
        return str(found["access_token"]), float(found["expires_in"])
    except (ValueError, KeyError, TypeError, RecursionError):
        raise ConnectionError("what answers is not Google's metadata server") from None


def _request(path: str, value: bytes | None = None) -> Request:
    url = f"http://{metadata_server() or METADATA_HOST}/computeMetadata/v1/{path}"
    return Request(url, value, {"Metadata-Flavor": "Google"}, method="PUT" if value is not None else "GET")
