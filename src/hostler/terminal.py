"""Text for a terminal: what others wrote is made visible, and never obeyed.

A terminal obeys every escape sequence, whoever wrote it: a traceback, a name or a log may clear the screen,
hide lines, set the clipboard. `guard` puts a stream before stdout and stderr that shows control characters as
signs (`␛[31m`), so that no verb has to think of it. Sequences of hostler's own pass by `own`, which marks
them with letters that nobody can guess. Bytes that a person asked for as they are go by `unguarded`.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable
from typing import Any, TextIO

# Controls but newline and tab; marks that turn the direction of letters. None of them is printable.
_OBEYED = "[\0-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
_OWN = r"\x1b\[[0-9;?]*[A-Za-z]|\r"
_MARK = "".join(chr(0xF0000 + n % 0xFFFE) for n in memoryview(os.urandom(8)).cast("H"))


def visible(text: str) -> str:
    """The text with signs in place of what a terminal would obey. Pure."""
    if text.replace("\n", "").replace("\t", "").isprintable() or re.search(_OBEYED, text) is None:
        return text
    return re.sub(_OBEYED, lambda found: sign(found[0]), text.replace("\r\n", "\n"))


def sign(letter: str) -> str:
    """How a letter that cannot be shown is shown: ␛, \\x9b, \\udcff."""
    code = ord(letter)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "␡"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def last_overwrite(line: str) -> str:
    """The part of a line that a progress bar left standing: each carriage return begins it anew."""
    return next((part for part in reversed(line.split("\r")) if part), "")


def guard() -> None:
    """From here on stdout and stderr show control characters, but for those of `own`."""
    sys.stdout, sys.stderr = _GuardedStream(sys.stdout), _GuardedStream(sys.stderr)


def own(text: str) -> str:
    """A sequence that hostler itself means for the terminal; a stream that is not one leaves it out."""
    if not isinstance(_below(sys.stdout), _GuardedStream):
        return text
    return re.sub(_OWN, lambda found: _MARK + found[0], text)


def unguarded(stream: TextIO) -> TextIO:
    """The stream itself, for bytes and texts as they are."""
    below = _below(stream)
    return below.stream if isinstance(below, _GuardedStream) else stream


class _GuardedStream:
    """A stream of text; in everything but writing, the one it is for. It has no `buffer`: bytes written there
    would not be looked at."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        first, *rest = text.split(_MARK)
        parts = [visible(first)]
        for part in rest:
            begins = re.match(_OWN, part)
            at = begins.end() if begins else 0
            parts += [part[:at] if self.stream.isatty() else "", visible(part[at:])]
        self.stream.write("".join(parts))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        if name == "buffer":
            raise AttributeError(name)
        return getattr(self.stream, name)


def _below(stream: Any) -> Any:
    """The guarded stream under one that draws lines above others."""
    return getattr(stream, "below", stream)
