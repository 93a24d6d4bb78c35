"""Bodies of several parts, as the JSON API takes them for uploads and batches: bytes stay as they are."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hostler.emulators.gcs.message import bad_request
from hostler.frozen import dataclass

_BOUNDARY = re.compile(r"""boundary=["']?([^"';]+)""")
_BLANK_LINE = re.compile(rb"\r?\n\r?\n")


@dataclass(frozen=True)
class Part:
    headers: Mapping[str, str]  # names in lower case
    body: bytes


def boundary_of(content_type: str) -> bytes:
    match = _BOUNDARY.search(content_type)
    if not match:
        raise bad_request("the content type names no boundary")
    return match[1].encode()


def parts_of(body: bytes, boundary: bytes) -> list[Part]:
    """A boundary counts at the beginning of a line only, so the bytes of a part may hold it elsewhere."""
    cuts = re.split(rb"(?:\A|\r?\n)--" + re.escape(boundary), body)
    return [part_of(re.sub(rb"\A[ \t]*\r?\n", b"", cut)) for cut in cuts[1:] if not cut.startswith(b"--")]


def part_of(text: bytes) -> Part:
    head, *rest = _BLANK_LINE.split(text, maxsplit=1)
    pairs = [line.partition(":") for line in head.decode("utf-8", "replace").splitlines()]
    return Part({name.strip().lower(): value.strip() for name, _, value in pairs}, rest[0] if rest else b"")
