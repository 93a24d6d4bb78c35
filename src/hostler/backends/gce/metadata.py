"""The metadata server of a VM: its name, its token, its preemption.

Standard library only: workers use it. No proxy knows this address, so none is asked.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import ProxyHandler, Request, build_opener

from hostler import env

HOST = "metadata.google.internal"
ANSWER = 10.0
EARLY = 60.0  # seconds before its end that a token is replaced


def get(path: str, *, timeout: float = ANSWER, **query: str) -> str:
    """The value at `path`."""
    return _ask(path, timeout, query)[0]


def watch(path: str, since: str, timeout: float) -> tuple[str, str]:
    """The value once it is another than `since` marks, or after `timeout`; and what marks it."""
    query = {"wait_for_change": "true", "timeout_sec": str(int(timeout)), "last_etag": since}
    return _ask(path, timeout + ANSWER, query)


def say(key: str, value: str) -> None:
    """Write a guest attribute (`namespace/key`), which whoever may see the VM can read."""
    request = Request(_url(f"instance/guest-attributes/{key}"), value.encode(), _HEADERS, method="PUT")
    _open(request, ANSWER).close()


def is_there() -> bool:
    """Whether this machine is a VM of Compute Engine."""
    try:
        get("instance/id", timeout=2.0)
    except (URLError, OSError):
        return False
    return True


def attribute(name: str) -> Any:
    """A value that came with the VM, as JSON."""
    return json.loads(get(f"instance/attributes/{name}"))


class Token:
    """The account's token, asked for again before it ends."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._value, self._until = "", 0.0

    def __call__(self) -> str:
        if self._clock() >= self._until:
            found = json.loads(get("instance/service-accounts/default/token"))
            self._value = found["access_token"]
            self._until = self._clock() + float(found["expires_in"]) - EARLY
        return self._value


_HEADERS = {"Metadata-Flavor": "Google"}


def _ask(path: str, timeout: float, query: dict[str, str]) -> tuple[str, str]:
    url = f"{_url(path)}?{urlencode(query)}" if query else _url(path)
    with _open(Request(url, headers=_HEADERS), timeout) as answer:
        return answer.read().decode(), answer.headers.get("ETag") or ""


def _url(path: str) -> str:
    return f"http://{env.metadata_server() or HOST}/computeMetadata/v1/{path}"


def _open(request: Request, timeout: float) -> Any:
    return build_opener(ProxyHandler({})).open(request, timeout=timeout)
