"""The masker hides secret values in a stream of bytes, also where two chunks cut a value.

What comes out, put together, does not depend on how the stream was cut. Only bytes that may begin a secret
are held back. `secret_encodings.py` lists the forms of a value that are hidden. In tracebacks it also takes
the run's folder away: what is left is the file's path in the project.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from hostler.worker.prepare.secret_encodings import encodings

COVER = b"***"
FRAME = b'File "'  # begins a frame of a traceback
SEED = 8  # bytes by which a place is found where a long value may have begun


class Masker:
    """Masks a stream. `feed` returns what is safe to pass on, `flush` the rest at the stream's end."""

    def __init__(self, secrets: Iterable[str], folders: Iterable[str] = ()) -> None:
        """`folders`: of the run's copy of the code, left out where a traceback names a file in them."""
        forms = {form: _needle(secret, form) for secret in set(secrets) for form in encodings(secret)}
        self._frames = {FRAME + folder.encode("utf-8", "surrogateescape") + b"/" for folder in folders}
        forms |= {frame: frame for frame in self._frames}
        self._forms = sorted(forms, key=len, reverse=True)
        self._needles = [forms[form] for form in self._forms]
        self._different = frozenset(self._needles)
        self._pending = b""

    def feed(self, chunk: bytes) -> bytes:
        if not self._forms:
            return chunk
        text = self._pending + chunk
        out, rest = self._covered(text, last=False)
        self._pending = text[rest:]
        return out

    def flush(self) -> bytes:
        rest, self._pending = self._pending, b""
        return self._covered(rest, last=True)[0]

    def cover(self, text: str) -> str:
        """A text of its own, not part of the stream."""
        if not self._forms:
            return text
        raw = self._covered(text.encode("utf-8", "surrogateescape"), last=True)[0]
        return raw.decode("utf-8", "surrogateescape")

    def _covered(self, text: bytes, *, last: bool) -> tuple[bytes, int]:
        """The text so far without secrets, and from where on it has to wait: from left to right, and the
        longest of those that begin at one place."""
        pieces, at, held = list[bytes](), 0, len(text) if last else self._held_from(text, 0)
        nexts = self._firsts(text)
        while True:
            begin, end = self._next(text, at, nexts)
            if not last and held < at:
                held = self._held_from(text, at)
            if begin >= held:
                return b"".join([*pieces, text[at:held]]), held
            pieces += [text[at:begin], FRAME if text[begin:end] in self._frames else COVER]
            at = end

    def _firsts(self, text: bytes) -> list[int]:
        """Where each form is first, -1 for nowhere. A form is looked for only where its needle is: most texts
        have none, and many forms of a secret have the same."""
        there = {needle for needle in self._different if needle in text}
        pairs = zip(self._forms, self._needles, strict=True)
        return [text.find(form) if needle in there else -1 for form, needle in pairs]

    def _next(self, text: bytes, at: int, nexts: list[int]) -> tuple[int, int]:
        """Where the first secret from `at` on is; `nexts` are the places known so far, -1 for none."""
        begin, end = len(text), len(text)
        for n, form in enumerate(self._forms):
            if 0 <= nexts[n] < at:
                nexts[n] = text.find(form, at)
            if 0 <= nexts[n] < begin:
                begin, end = nexts[n], nexts[n] + len(form)
        return begin, end

    def _held_from(self, text: bytes, at: int) -> int:
        """The first place from which all that is left may be the beginning of a secret."""
        return min((_begun(text, form, at) for form in self._forms), default=len(text))


def _needle(secret: str, form: bytes) -> bytes:
    """A part of the form that most forms of the secret have: its longest letters and digits, which nobody
    escapes."""
    longest = max(re.findall("[A-Za-z0-9]{3,}", secret), key=len, default="").encode()
    return longest if longest and longest in form else form


def _begun(text: bytes, form: bytes, at: int) -> int:
    """Where the last bytes of the text begin that are the first ones of this form, and not all of it."""
    start, seed = max(at, len(text) - len(form) + 1), form[:SEED]
    while (start := text.find(seed, start)) >= 0:
        if form.startswith(text[start:]):
            return start
        start += 1
    for short in range(max(at, len(text) - min(len(form), SEED) + 1), len(text)):
        if form.startswith(text[short:]):
            return short
    return len(text)
