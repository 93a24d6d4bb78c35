"""Tells the person who waits how far a large upload is.

One line that is written over on a terminal, now and then a new one elsewhere. What is quick says nothing.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TextIO

from hostler.terminal import own

QUIET = 1.0  # seconds before anything is said
TERMINAL, ELSEWHERE = 0.2, 10.0  # seconds between two lines
MB = 1e6


@dataclass
class Progress:
    """Progress of one upload. Called with the bytes added, and whether they were in the store already."""

    what: str
    total: int
    out: TextIO = field(default_factory=lambda: sys.stderr)
    clock: Callable[[], float] = time.monotonic
    _done: int = 0
    _kept: int = 0
    _begun: float = 0.0
    _said: float | None = None

    def __post_init__(self) -> None:
        self._begun = self.clock()

    def __call__(self, size: int, old: bool) -> None:
        self._done += size
        self._kept += size if old else 0
        now = self.clock()
        over = self._done >= self.total
        since = now - (self._begun if self._said is None else self._said)
        every = QUIET if self._said is None else TERMINAL if self.out.isatty() else ELSEWHERE
        if since >= every or (over and self._said is not None):
            self._say(now, over=over)

    def _say(self, now: float, *, over: bool) -> None:
        self._said = now
        begin, end = (own("\r\x1b[K"), "\n" if over else "") if self.out.isatty() else ("", "\n")
        print(f"{begin}hostler: {self.line(now)}", end=end, file=self.out, flush=True)

    def line(self, now: float) -> str:
        rate = (self._done - self._kept) / max(now - self._begun, 1e-9)
        text = f"{self.what}: {self._done / MB:.0f} of {self.total / MB:.0f} MB, {rate / MB:.1f} MB/s"
        return f"{text} ({self._kept / MB:.0f} MB were there)" if self._kept else text
