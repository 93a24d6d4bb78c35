"""Fragments of a log to whole lines: a fragment may end in the middle of a line, or of a letter."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

from hostler.records.logs import Piece


class Lines:
    """Takes pieces, gives lines with the attempt they are of. `tail`: of what is there at the first take,
    only so many."""

    def __init__(self, pattern: re.Pattern[str] | None = None, tail: int | None = None) -> None:
        self._pattern, self._tail = pattern, tail
        self._rest = b""
        self._attempt = 0
        self._ready: deque[tuple[int, str]] = deque()

    def add(self, piece: Piece) -> None:
        if piece.attempt != self._attempt:
            self.finish()
            self._attempt = piece.attempt
        *whole, self._rest = (self._rest + piece.data).split(b"\n")
        for line in whole:
            self._keep(line)

    def finish(self) -> None:
        """What has no line end yet is a line, too: nothing more comes."""
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
