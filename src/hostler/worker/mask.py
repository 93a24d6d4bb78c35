"""Hides secret values in a stream of bytes, also where a value is cut by the border of two chunks.

What comes out, put together, does not depend on how the stream was cut. Only bytes that may begin a secret
are held back. Values shorter than four bytes are left alone: hiding them would only spoil the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SHORTEST = 4
COVER = b"***"


class Masker:
    """One stream. `feed` returns what is safe to pass on, `flush` the rest at the stream's end."""

    def __init__(self, secrets: Iterable[str]) -> None:
        values = {secret.encode("utf-8", "surrogateescape") for secret in secrets}
        self._values = sorted((value for value in values if len(value) >= SHORTEST), key=len, reverse=True)
        self._pattern = re.compile(b"|".join(re.escape(value) for value in self._values) or b"(?!)")
        self._beginnings = {value[:length] for value in self._values for length in range(1, len(value))}
        self._pending = b""

    def feed(self, chunk: bytes) -> bytes:
        text, out, at = self._pending + chunk, b"", 0
        while True:
            match = self._pattern.search(text, at)
            held = self._held_from(text, at)
            if match is None or held <= match.start():
                self._pending = text[held:]
                return out + text[at:held]
            out += text[at : match.start()] + COVER
            at = match.end()

    def flush(self) -> bytes:
        rest, self._pending = self._pending, b""
        return self._pattern.sub(COVER, rest)

    def cover(self, text: str) -> str:
        """A text of its own, not part of the stream."""
        raw = self._pattern.sub(COVER, text.encode("utf-8", "surrogateescape"))
        return raw.decode("utf-8", "surrogateescape")

    def _held_from(self, text: bytes, at: int) -> int:
        """The first place from which all that is left may be the beginning of a secret."""
        longest = len(self._values[0]) - 1 if self._values else 0
        for start in range(max(at, len(text) - longest), len(text)):
            if text[start:] in self._beginnings:
                return start
        return len(text)
