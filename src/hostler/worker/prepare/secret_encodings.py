"""The forms in which a secret value may turn up in a text: what programs commonly make of it. Pure.

Covered are: the value itself; each line of one that has several; base64 (standard and URL-safe, also within a
longer text such as `user:password`, also wrapped at 64 or 76 columns, also in JSON or a URL);
percent-encoding as URLs, paths and forms have it, in large or small digits, also twice; the escapes of JSON,
of Python's repr of text and of bytes, each also within another of them (JSON in JSON); those of a shell's
single quotes. Not covered is what hides it from us, too: hexadecimal digits, compression, encryption, a part
of it.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator
from urllib.parse import quote_from_bytes

SHORTEST = 4  # bytes: hiding less would only spoil the text
LINE = 8  # bytes of one line of several: braces and the like are no secret
WRAPPED = (64, 76)  # characters of a line of base64, as PEM has it and as the command of that name prints it
SAFE = (  # letters besides those, digits and _.-~ that are left as they are
    "",
    "/",
    "()*!'",  # encodeURIComponent
    "()*!';/?:@&=+$,#",  # encodeURI
    "!$&'()*+,;=:@/",  # a path by RFC 3986
    "!#$%&'()*+,/:;=?@[]",  # what requests leaves
)


def encodings(value: str) -> set[bytes]:
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
    once = set(_written(value))
    yield from once
    for text in once:
        yield from _written(text)
    yield value.replace("'", "'\\''")
    yield value.replace("'", "'\"'\"'")


def _written(value: str) -> Iterator[str]:
    """As JSON and as Python's repr of text and of bytes, in whichever quotes a text around it has led to."""
    for plain in (True, False):
        written = json.dumps(value, ensure_ascii=plain)[1:-1]
        yield from (written, written.replace("/", "\\/"))
    for shown in (repr(value + "'\""), ascii(value + "'\""), repr(_bytes(value) + b"'\"")[1:]):
        inside = shown[1:-1].removesuffix("\\'\"")
        yield from (inside, inside.replace("\\'", "'"))


def _quoted(raw: bytes) -> Iterator[bytes]:
    for safe in SAFE:
        text = quote_from_bytes(raw, safe=safe)
        for written in (text, text.replace("~", "%7E"), text.replace("%20", "+")):
            yield from (written.encode(), _lower(written).encode())
    twice = quote_from_bytes(quote_from_bytes(raw, safe="").encode(), safe="")
    yield from (twice.encode(), _lower(twice).encode())


def _lower(text: str) -> str:
    """With the hexadecimal digits of its escapes in small letters."""
    return re.sub("%(25)?[0-9A-F]{2}", lambda found: found[0].lower(), text)


def _base64(raw: bytes) -> Iterator[bytes]:
    for shift in range(3):
        core = _core(raw, shift)
        yield from (core, core.replace(b"+", b"-").replace(b"/", b"_"), core.replace(b"/", b"\\/"))
        quoted = core.replace(b"+", b"%2B").replace(b"/", b"%2F")
        yield from (quoted, _lower(quoted.decode()).encode())
    whole = _core(raw, 0)
    for width in WRAPPED:
        if len(raw) > width * 3 // 4:
            yield b"\n".join(whole[at : at + width] for at in range(0, len(whole), width))


def _core(raw: bytes, shift: int) -> bytes:
    """The part of its base64 that depends on nothing else, with so many bytes (modulo three) before it."""
    text = base64.b64encode(b"\0" * shift + raw).rstrip(b"=")
    partial = (shift + len(raw)) % 3 != 0
    return text[(0, 2, 3)[shift] : len(text) - partial]
