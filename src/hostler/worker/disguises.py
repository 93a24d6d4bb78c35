"""The forms in which a secret value may turn up in a text: what programs commonly make of it. Pure.

Covered are: the value itself; each line of one that has several; base64 (standard and URL-safe, also within a
longer text such as `user:password`, also wrapped at 76 columns); percent-encoding; the escapes of JSON, of
Python's repr and of a shell's single quotes. Not covered is what hides it from us, too: hexadecimal digits,
compression, encryption, a part of it.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from urllib.parse import quote, quote_from_bytes, quote_plus

SHORTEST = 4  # bytes: hiding less would only spoil the text
LINE = 8  # bytes of one line of several: braces and the like are no secret
WRAPPED = 76  # characters of a line of base64, as the command of that name prints it


def disguises(value: str) -> set[bytes]:
    """All of them, as bytes; none for a value that is too short to be hidden."""
    raw = _bytes(value)
    if len(raw.strip()) < SHORTEST:
        return set()
    found = {raw, *_lines(value), *map(_bytes, _escaped(value)), *_quoted(raw)}
    for each in {raw, raw.strip()}:
        found.update(_base64(each) if len(each) >= SHORTEST else ())
    return {form for form in found if len(form.strip()) >= SHORTEST}


def _bytes(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _lines(value: str) -> Iterator[bytes]:
    lines = [line.strip() for line in _bytes(value).splitlines() if line.strip()]
    for line in lines:
        if len(line) >= (LINE if len(lines) > 1 else SHORTEST):
            yield line


def _escaped(value: str) -> Iterator[str]:
    for plain in (True, False):
        written = json.dumps(value, ensure_ascii=plain)[1:-1]
        yield from (written, written.replace("/", "\\/"))
    # in either kind of quotes, whichever a text around it has led to
    shown = repr(value + "'\"")[1:-1].removesuffix("\\'\"")
    yield from (shown, shown.replace("\\'", "'"))
    yield ascii(value)[1:-1]
    yield value.replace("'", "'\\''")
    yield value.replace("'", "'\"'\"'")


def _quoted(raw: bytes) -> Iterator[bytes]:
    for text in (quote_from_bytes(raw, safe=""), quote_from_bytes(raw), quote(raw, safe="~()*!.'")):
        yield from (text.encode(), _lower(text).encode())
    yield quote_plus(raw).encode()


def _lower(text: str) -> str:
    """With the hexadecimal digits of its escapes in small letters."""
    parts = text.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])


def _base64(raw: bytes) -> Iterator[bytes]:
    for shift in range(3):
        core = _core(raw, shift)
        yield from (core, core.replace(b"+", b"-").replace(b"/", b"_"))
    if len(raw) > WRAPPED * 3 // 4:
        whole = _core(raw, 0)
        yield b"\n".join(whole[at : at + WRAPPED] for at in range(0, len(whole), WRAPPED))


def _core(raw: bytes, shift: int) -> bytes:
    """What of its base64 depends on nothing else, if so many bytes (modulo three) come before it."""
    text = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
    partial = (shift + len(raw)) % 3 != 0
    return text[(0, 2, 3)[shift] : len(text) - partial]
