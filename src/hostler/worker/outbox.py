"""What is on its way to the store: log text and metric points, in order, each once.

Filling it never waits for the store: whoever notes a line or takes a point in does so while an upload
hangs. A fragment whose answer was lost goes again with the same bytes under the same number.
"""

from __future__ import annotations

import threading

from hostler.records.logs import LogWriter
from hostler.records.metrics import MetricWriter
from hostler.records.points import Point


class Outbox:
    def __init__(self, log_writer: LogWriter, metric_writer: MetricWriter) -> None:
        self._log_writer, self._metric_writer = log_writer, metric_writer
        self._filling, self._sending = threading.Lock(), threading.RLock()
        self._text: list[bytes] = []
        self._points: list[Point] = []
        self._added = 0
        self._sent_text = b""  # not known to have arrived
        self._sent_points: list[Point] = []

    @property
    def held(self) -> int:
        """Bytes of text that wait."""
        with self._filling:
            return sum(map(len, self._text)) + len(self._sent_text)

    @property
    def empty(self) -> bool:
        with self._filling:
            return not (self._text or self._points or self._sent_text or self._sent_points)

    @property
    def position(self) -> int:
        """Points of this attempt that are in the store."""
        return self._metric_writer.position

    def add_text(self, text: bytes) -> None:
        with self._filling:
            self._text.append(text)

    def add_points(self, points: list[Point]) -> int:
        """Returns the number, within the attempt, of the first of them."""
        with self._filling:
            self._points += points
            self._added += len(points)
            return self._added - len(points)

    def send(self) -> None:
        """All of it into the store; raises if that cannot be reached, and nothing is lost."""
        with self._sending:
            while self._next_text():
                self._log_writer.write(self._sent_text)
                self._sent_text = b""
            while self._next_points():
                self._metric_writer.write(self._sent_points)
                self._sent_points = []

    def _next_text(self) -> bool:
        with self._filling:
            if not self._sent_text:
                self._sent_text, self._text = b"".join(self._text), []
            return bool(self._sent_text)

    def _next_points(self) -> bool:
        with self._filling:
            if not self._sent_points:
                self._sent_points, self._points = self._points, []
            return bool(self._sent_points)
