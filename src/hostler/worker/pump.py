"""Brings what a run prints and measures into the store, in fragments, while it runs.

The local files are the buffer: while the store cannot be reached nothing is dropped, it waits on disk.
Fragments come often at first and more rarely as the run grows old, so that weeks make thousands of
objects, not millions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hostler.errors import StoreError
from hostler.records.logs import LogWriter
from hostler.records.metrics import MetricWriter, Origin, summary
from hostler.records.points import Point, Unpacker
from hostler.settings import Timing
from hostler.worker.mask import Masker
from hostler.worker.picker import Picker

PIECE = 1 << 20
TAIL = 64_000


class Pump:
    """One attempt's log and metrics on their way to the store. Safe to use from several threads."""

    def __init__(
        self,
        log: Path,
        metrics: Path,
        log_writer: LogWriter,
        metric_writer: MetricWriter,
        picker: Picker,
        mask: Masker,
        timing: Timing,
        clock: Callable[[], float],
        wall: Callable[[], float],
    ) -> None:
        self._log, self._metrics = _Follower(log), _Follower(metrics)
        self._log_writer, self._metric_writer = log_writer, metric_writer
        self._picker, self._mask, self._unpacker = picker, mask, Unpacker()
        self._timing, self._clock, self._wall = timing, clock, wall
        self._lock = threading.RLock()
        self._started = self._flushed = clock()
        self._text: list[bytes] = []
        self._waiting: list[Point] = []
        self._sent_text = b""  # on its way: after a lost answer the same goes again under the same number
        self._sent_points: list[Point] = []
        self._seen: list[Point] = []
        self.tail = b""
        self.moved = clock()  # when anything new was last seen
        self.steps = 0

    def pump(self) -> None:
        """Read what is new, and write it to the store if it is time."""
        with self._lock:
            self._read()
            held = sum(map(len, self._text))
            due = self._clock() - self._flushed >= self._interval()
            if held > PIECE or (due and (held or self._waiting or self._sent_text or self._sent_points)):
                try:
                    self.flush()
                except StoreError:
                    self._flushed = self._clock()  # it stays here, and goes with the next

    def flush(self) -> None:
        """All that was read so far into the store; raises if it cannot be reached."""
        with self._lock:
            self._flushed = self._clock()
            while self._text or self._sent_text:
                if not self._sent_text:
                    self._sent_text, self._text = b"".join(self._text), []
                self._log_writer.write(self._sent_text)
                self._sent_text = b""
            while self._waiting or self._sent_points:
                if not self._sent_points:
                    self._sent_points, self._waiting = self._waiting, []
                self._metric_writer.write(self._sent_points)
                self._sent_points = []

    def covered(self) -> dict[str, Any]:
        """What a checkpoint covers: all that was printed and measured until now, once it is in the store."""
        with self._lock:
            self._read()
            self.flush()
            return {
                "position": self._metric_writer.position,
                "metric_step": self.steps,
                "totals": summary(self._seen),
            }

    def finish(self) -> None:
        """The process has exited: take the rest of both files in."""
        with self._lock:
            self._read()
            self._keep(self._mask.flush())
            self._take(self._picker.close(self._wall()))

    def note(self, line: str) -> None:
        """A line of the worker's own in the run's log."""
        with self._lock:
            self._keep(f"[hostler] {line}\n".encode())

    def add(self, point: Point) -> None:
        """A point of the worker's own: use of CPU, memory, GPU."""
        with self._lock:
            self._waiting.append(point)

    def start_over(self) -> None:
        """The attempt begins at the beginning: what attempts before it measured is not of its curve."""
        self._metric_writer.continue_from(None)

    def continue_from(self, origin: Origin, covered: Mapping[str, Any]) -> None:
        """The attempt goes on from a checkpoint that covers this much."""
        self._metric_writer.continue_from(origin)
        self.steps = int(covered.get("metric_step", 0))
        self._picker.continue_from(self.steps + 1)
        self._seen = _extremes(covered.get("totals", {}), self._wall())

    def totals(self) -> dict[str, dict[str, float]]:
        return summary(self._seen)  # never changed, only replaced: the pulse must not wait for an upload

    def _read(self) -> None:
        while piece := self._log.read(PIECE):
            self.moved = self._clock()
            self._keep(self._mask.feed(piece))
            self._take(self._picker.feed(piece, self._wall()))
        while piece := self._metrics.read(PIECE):
            self.moved = self._clock()
            self._take(self._unpacker.feed(piece))

    def _keep(self, text: bytes) -> None:
        if text:
            self._text.append(text)
            self.tail = (self.tail + text)[-TAIL:]

    def _take(self, points: list[Point]) -> None:
        self._waiting += points
        for point in points:
            self.steps = max(self.steps, point.step)
        self._seen = _thin(self._seen + points)

    def _interval(self) -> float:
        age = self._clock() - self._started
        return min(self._timing.flush_max, max(self._timing.flush, age / 200))


class _Follower:
    """A growing file, read from where the last read ended."""

    def __init__(self, path: Path) -> None:
        self._path, self._at = path, 0

    def read(self, size: int) -> bytes:
        try:
            with open(self._path, "rb") as file:
                file.seek(self._at)
                data = file.read(size)
        except FileNotFoundError:
            return b""
        self._at += len(data)
        return data


def _thin(points: list[Point]) -> list[Point]:
    """Totals need only the extremes and the last: fold a long history into few points."""
    if len(points) < 1000:
        return points
    return _extremes(summary(points), points[-1].time)


def _extremes(totals: Mapping[str, Mapping[str, float]], time: float) -> list[Point]:
    """Points with these totals."""
    lows = {name: row["min"] for name, row in totals.items()}
    highs = {name: row["max"] for name, row in totals.items()}
    ends = [Point(int(row["step"]), time, {name: row["last"]}) for name, row in totals.items()]
    return [Point(0, time, lows), Point(0, time, highs), *ends]
