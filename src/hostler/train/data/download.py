"""A file fetched from the web: whole or not at all.

Bytes arrive beside the file, in `.NAME.part`. A connection that breaks is tried again and goes on where it
broke, if the server still has the same file; if not, from the beginning. Only a file of the length that the
server told gets its name. Whoever calls holds a lock.
"""

from __future__ import annotations

import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

from hostler.errors import MissingError

WAIT = 30.0  # seconds for an answer
TRIES = 4
PAUSE = 1.0  # seconds before the next try
_CHUNK = 1 << 20
_NOT_THERE = (404, 410)


class _CutShort(OSError):
    """The connection ended before the file did."""


def fetch(url: str, path: Path, pause: Callable[[float], None] = time.sleep) -> bool:
    """Bring a file to its place; False if the server has none at this address."""
    for number in reversed(range(TRIES)):
        try:
            return _fetch(url, path)
        except urllib.error.HTTPError as error:
            if error.code in _NOT_THERE:
                return False
            problem: Exception = error
        except (OSError, http.client.HTTPException) as error:
            problem = error
        if number:
            pause(PAUSE)
    hint = f"the same command goes on where it broke; or put the file at {path}"
    raise MissingError(f"{url} cannot be fetched: {problem}", hint=hint)


def _fetch(url: str, path: Path) -> bool:
    part, kind = path.with_name(f".{path.name}.part"), path.with_name(f".{path.name}.part-of")
    request = urllib.request.Request(url)
    have = part.stat().st_size if part.exists() and kind.exists() else 0
    if have:
        request.add_header("Range", f"bytes={have}-")
        request.add_header("If-Range", kind.read_text())
    try:
        answer = urllib.request.urlopen(request, timeout=WAIT)
    except urllib.error.HTTPError as error:
        if error.code == 416:  # the part is not a part of it
            part.unlink(missing_ok=True)
        raise
    with answer:
        goes_on = answer.status == 206
        length = _length(answer)
        mark = answer.headers.get("ETag") or answer.headers.get("Last-Modified") or ""
        if mark and not mark.startswith("W/"):
            kind.write_text(mark)
        else:
            kind.unlink(missing_ok=True)
        with open(part, "ab" if goes_on else "wb") as file:
            while piece := answer.read(_CHUNK):
                file.write(piece)
            size = file.tell()
    if length is not None and size != length + (have if goes_on else 0):
        raise _CutShort(f"the connection ended after {size:,} bytes")
    os.replace(part, path)
    kind.unlink(missing_ok=True)
    return True


def _length(answer: http.client.HTTPResponse) -> int | None:
    content_length = answer.headers.get("Content-Length", "")
    return int(content_length) if content_length.isdigit() else None
