"""Brings what a run prints and measures into the store, in fragments, while it runs.

The local files are the buffer: while the store cannot be reached nothing is dropped, it waits on disk.
Fragments come often at first and more rarely as the run grows old, so that weeks make thousands of
objects, not millions.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from hostler.errors import StoreError
from hostler.records.logs import LogWriter
from hostler.records.metrics import MetricWriter, Origin, summary
from hostler.records.points import Point, Unpacker
from hostler.settings import Timing
from hostler.worker.mask import Masker
from hostler.worker.picker import Picker

PIECE = 1 << 20
HELD = 16 * PIECE  # read ahead of the store; the rest waits in the file
TAIL = 64_000


class Pump:
    """One attempt's log and metrics on their way to the store. Used by one thread but for `flush`."""

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
        self._seen: list[Point] = []
        self._closed = False  # the process has exited
        self.tail = b""  # the end of what the process itself printed
        self.moved = clock()  # when anything new was last seen
        self.steps = 0

    def pump(self) -> None:
        """Read what is new, and write it to the store if it is time."""
        with self._lock:
            self._read()
            held = self._held()
            if held > PIECE or (
                (held or self._waiting) and self._clock() - self._flushed >= self._interval()
            ):
                try:
                    self.flush()
                except StoreError:
                    self._flushed = self._clock()  # it stays here, and goes with the next

    def flush(self) -> None:
        """All that was printed and measured until now into the store; raises if it cannot be reached."""
        with self._lock:
            self._flushed = self._clock()
            end = self._log.size()
            self._read()
            self._write()
            while self._log.at < end:
                self._read()
                self._write()

    def finish(self) -> None:
        """The process has exited: take the rest of both files in."""
        with self._lock:
            self._closed = True
            self._read()

    def note(self, line: str) -> None:
        """A line of the worker's own in the run's log."""
        with self._lock:
            self._text.append(f"[hostler] {self.hide(line)}\n".encode("utf-8", "surrogateescape"))

    def hide(self, text: str) -> str:
        """The text without secret values."""
        return self._mask.cover(text)

    def add(self, point: Point) -> None:
        """A point of the worker's own: use of CPU, memory, GPU."""
        with self._lock:
            self._waiting.append(point)

    def continue_from(self, origin: Origin, step: int, totals: Mapping[str, Mapping[str, float]]) -> None:
        """The attempt goes on from a checkpoint taken at `step`, when the metrics stood so."""
        self._metric_writer.continue_from(origin)
        self._picker.continue_from(step + 1)
        self.steps = step
        self._seen = _points(totals, self._wall())

    @property
    def position(self) -> int:
        return self._metric_writer.position

    def totals(self) -> dict[str, dict[str, float]]:
        with self._lock:
            return summary(self._seen)

    def _read(self) -> None:
        while self._held() < HELD and (piece := self._log.read(PIECE)):
            self.moved = self._clock()
            self._keep(self._mask.feed(piece))
            self._take(self._picker.feed(piece, self._wall()))
        if self._closed and self._held() < HELD:
            self._keep(self._mask.flush())
            self._take(self._picker.close(self._wall()))
        while piece := self._metrics.read(PIECE):
            self.moved = self._clock()
            self._take(self._unpacker.feed(piece))

    def _write(self) -> None:
        if self._text:
            self._log_writer.write(b"".join(self._text))
            self._text.clear()
        if self._waiting:
            self._metric_writer.write(self._waiting)
            self._waiting.clear()

    def _held(self) -> int:
        return sum(map(len, self._text))

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
        self._path, self.at = path, 0

    def read(self, size: int) -> bytes:
        try:
            with open(self._path, "rb") as file:
                file.seek(self.at)
                data = file.read(size)
        except FileNotFoundError:
            return b""
        self.at += len(data)
        return data

    def size(self) -> int:
        try:
            return self._path.stat().st_size
        except FileNotFoundError:
            return 0


def _thin(points: list[Point]) -> list[Point]:
    """Totals need only the extremes and the last: fold a long history into few points."""
    if len(points) < 1000:
        return points
    return _points(summary(points), points[-1].time)


def _points(totals: Mapping[str, Mapping[str, float]], time: float) -> list[Point]:
    """Few points with these totals."""
    lows = {name: row["min"] for name, row in totals.items()}
    highs = {name: row["max"] for name, row in totals.items()}
    ends = [Point(int(row["step"]), time, {name: row["last"]}) for name, row in totals.items()]
    return [Point(0, time, lows), Point(0, time, highs), *ends]
