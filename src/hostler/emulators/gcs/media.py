"""An object's bytes as an answer: whole or a range."""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import formatdate

from hostler.emulators.gcs.message import Answer, Refusal
from hostler.emulators.gcs.objects import Object

_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


def media(found: Object, asked: Mapping[str, str], *, summed: bool) -> Answer:
    """`asked`: the request's headers. `summed`: always tell the CRC-32C, whatever it costs."""
    headers = found.xml_headers() | {
        "Content-Type": found.content_type,
        "Last-Modified": formatdate(found.updated, usegmt=True),
        "Accept-Ranges": "bytes",
        "x-goog-stored-content-encoding": "identity",
        "x-goog-storage-class": "STANDARD",
        **{f"x-goog-meta-{name}": value for name, value in found.metadata.items()},
    }
    if summed and "crc32c" not in headers.get("X-Goog-Hash", ""):
        headers["X-Goog-Hash"] = f"crc32c={found.crc32c}"
    span = span_of(asked.get("range", ""), len(found.data))
    if span is None:
        return Answer(200, found.data, headers)
    begin, end = span
    headers["Content-Range"] = f"bytes {begin}-{end - 1}/{len(found.data)}"
    return Answer(206, found.data[begin:end], headers)


def span_of(asked: str, size: int) -> tuple[int, int] | None:
    """[begin, end) of a Range header; None for the whole object; Refusal 416 if it lies beyond."""
    match = _RANGE.fullmatch(asked.replace(" ", ""))
    if not match or not any(match.groups()):
        return None
    if not match[1]:
        begin, end = max(0, size - int(match[2])), size
    else:
        begin, end = int(match[1]), min(int(match[2]) + 1 if match[2] else size, size)
    if begin >= end:
        text = "The requested range cannot be satisfied."
        raise Refusal(416, "requestedRangeNotSatisfiable", "InvalidRange", text)
    return begin, end
