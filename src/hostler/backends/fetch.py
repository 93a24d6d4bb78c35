"""HTTP requests of programs that have the standard library alone, and objects of Google's storage by them."""

from __future__ import annotations

import copy
import sys
import time
from collections.abc import Callable
from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import ProxyHandler, Request, build_opener

from hostler.env import gcs_emulator
from hostler.errors import MachineError

TRIES = 8  # of one request, in half a minute
BUSY = (408, 429)  # refusals that another try may end


def fetch(request: Request, *, timeout: float = 60.0, proxies: bool = True) -> bytes:
    """The body of the answer, or OSError. A server that is silent or broken for a moment is asked again."""
    for n in range(TRIES):
        try:
            with open_url(copy.copy(request), timeout, proxies=proxies) as answer:
                return bytes(answer.read())
        except HTTPException as error:
            if n == TRIES - 1:
                raise OSError(f"the answer broke off: {error}") from error
        except OSError as error:
            if n == TRIES - 1 or is_refusal(error):
                raise
        time.sleep(min(2.0**n, 15.0) / 2)
    raise AssertionError("the last try answers or raises")


def fetch_object(request: Callable[[], Request], store: str, key: str) -> bytes:
    """An object of a bucket. MachineError if this machine may not have it, OSError if nobody answers.

    To make the request may itself take one, for a token."""
    try:
        return fetch(request())
    except OSError as error:
        if is_refusal(error):
            hint = "check that the machine's account, or the pod's Secret, opens the bucket"
            raise MachineError(f"{key} cannot be read from {store}: {error}", hint) from None
        raise OSError(f"{store} cannot be reached: {error}") from None


def fetch_bytecode(download: Callable[[str], bytes], key: str) -> bytes:
    """Compiled code of a library that an earlier worker with this Python left; empty if there is none, or for
    another kind of object. No start fails without it."""
    kind, _, name = key.partition("/")
    if kind != "library":
        return b""
    try:
        return download(f"{kind}/{name[: -len('.zip')]}.{sys.implementation.cache_tag}.zip")
    except Exception:
        return b""


def google_object(store: str, key: str, token: str) -> Request:
    """The request for one object of a gs:// store."""
    bucket, _, prefix = store[len("gs://") :].partition("/")
    name = "/".join(part for part in (prefix.strip("/"), key) if part)
    base = gcs_emulator() or "https://storage.googleapis.com"
    base = base if "://" in base else "http://" + base
    url = f"{base}/storage/v1/b/{bucket}/o/{quote(name, safe='')}?alt=media"
    return Request(url, headers={"Authorization": "Bearer " + token})


def open_url(request: Request, timeout: float, *, proxies: bool = True) -> Any:
    return build_opener(*([] if proxies else [ProxyHandler({})])).open(request, timeout=timeout)


def is_refusal(error: OSError) -> bool:
    """Whether a server said no, for good."""
    return isinstance(error, HTTPError) and error.code < 500 and error.code not in BUSY
