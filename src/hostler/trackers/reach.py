"""Checks that a tracking tool's server answers, before its library is used, which may try for
minutes without a word."""

from __future__ import annotations

import ssl
import threading
from email.message import Message
from http.client import HTTPException
from typing import IO
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from hostler.errors import HostUnreachable

WITHIN = 8.0  # seconds


def reach(kind: str, url: str, cure: str) -> None:
    """Raise a one-line error if no server answers within some seconds. Any answer will do, a refusal too;
    anything but a web address passes unchecked."""
    place = _place(url)
    if not place:
        return
    found: list[str] = []
    asking = threading.Thread(target=lambda: found.append(_trouble(place)), daemon=True)
    asking.start()
    asking.join(WITHIN + 1)  # to look a name up has no bound of its own
    if trouble := found[0] if found else f"no answer within {WITHIN:g} s":
        raise HostUnreachable(f"{kind}: {place} does not answer ({trouble})", hint=cure)


def _place(url: str) -> str:
    """Without a password, and whatever follows the host."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}/" if parts.scheme in ("http", "https") and host else ""


def _trouble(place: str) -> str:
    """'' where something answers; what is wrong with its certificate is for the tool to say, which may have
    been told to trust it."""
    try:
        build_opener(_NoRedirect).open(Request(place, method="HEAD"), timeout=WITHIN).close()
    except HTTPError:
        return ""
    except URLError as error:
        if isinstance(error.reason, ssl.SSLError):
            return ""
        return _words(error.reason) if isinstance(error.reason, OSError) else str(error.reason)
    except (OSError, HTTPException, ValueError) as error:
        return _words(error)
    return ""


def _words(error: BaseException) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {WITHIN:g} s"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return text or type(error).__name__


class _NoRedirect(HTTPRedirectHandler):
    """Another place that it leads to is not asked."""

    def redirect_request(
        self, req: Request, fp: IO[bytes], code: int, msg: str, headers: Message, newurl: str
    ) -> None:
        return None
