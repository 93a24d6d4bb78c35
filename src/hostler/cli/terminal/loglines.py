"""Fragments of a log to whole lines, or to text as it comes: a fragment may end in the middle of a line or
of a letter."""

from __future__ import annotations

import codecs
import re
import sys
from collections import deque
from collections.abc import Iterator, Sequence

import click

from hostler import terminal
from hostler.records.series.logs import LogPiece


def print_line(line: str, name: str = "", *, raw: bool) -> None:
    """Print a line of a run; `raw`: for the terminal to obey."""
    if raw:
        click.echo(f"{name}{line}", file=terminal.unguarded(sys.stdout))
    else:
        click.echo(f"{name}{terminal.last_overwrite(line)}")


class LogLines:
    """Takes pieces, gives lines with the attempt they are of. `tail`: of what is there at the first take,
    only so many."""

    def __init__(self, pattern: re.Pattern[str] | None = None, tail: int | None = None) -> None:
        self._pattern, self._tail = pattern, tail
        self._rest = b""
        self._attempt = 0
        self._ready: deque[tuple[int, str]] = deque()

    def add(self, piece: LogPiece) -> None:
        if piece.attempt != self._attempt:
            self.finish()
            self._attempt = piece.attempt
        *whole, self._rest = (self._rest + piece.data).split(b"\n")
        for line in whole:
            self._keep(line)

    def finish(self) -> None:
        """Keep an unfinished line as a whole one: nothing more comes."""
        if self._rest:
            self._keep(self._rest)
        self._rest = b""

    def take(self) -> Iterator[tuple[int, str]]:
        """Lines that are complete, each once."""
        if self._tail is not None:
            while len(self._ready) > self._tail:
                self._ready.popleft()
        self._tail = None
        while self._ready:
            yield self._ready.popleft()

    def _keep(self, line: bytes) -> None:
        text = line.decode("utf-8", "replace")
        if self._pattern is None or self._pattern.search(text):
            self._ready.append((self._attempt, text))


class Text:
    """Takes pieces, gives what to print at once. Of a progress bar each piece leaves one line."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = False  # whether the line that is printed now has letters
        self._return = ""  # a carriage return at a piece's end: a newline may follow

    def of(self, data: bytes) -> str:
        text = (self._return + self._decoder.decode(data)).replace("\r\n", "\n")
        self._return = "\r" if text.endswith("\r") else ""
        return "".join(self._lines(text.removesuffix("\r").split("\n")))

    def _lines(self, lines: Sequence[str]) -> Iterator[str]:
        for n, line in enumerate(lines):
            if n:
                yield "\n"
                self._begun = False
            shown = terminal.last_overwrite(line)
            if self._begun and shown and "\r" in line:
                yield "\n"
            yield shown
            self._begun = self._begun or bool(shown)
