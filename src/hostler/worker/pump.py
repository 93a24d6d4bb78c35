"""Brings what a run prints and measures into the store, in fragments, while it runs.

The local files are the buffer: while the store cannot be reached nothing is dropped, it waits on disk.
Fragments come often at first and more rarely as the run grows old, so that weeks make thousands of
objects, not millions; while somebody looks, with every beat.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from hostler.errors import StoreError
from hostler.records.interest import Interest
from hostler.records.logs import LogWriter
from hostler.records.metrics import MetricWriter, Origin, summary
from hostler.records.points import Point, PointFolder
from hostler.settings import Timing
from hostler.worker.mask import Masker
from hostler.worker.outbox import Outbox
from hostler.worker.picker import Picker

PIECE = 1 << 20
HELD = 16 * PIECE  # read ahead of the store; the rest waits in the file
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
        interest: Interest | None = None,
    ) -> None:
        self._log, self._metrics = _Follower(log), PointFolder(metrics)
        self._metric_writer, self._outbox = metric_writer, Outbox(log_writer, metric_writer)
        self._picker, self._mask, self._logged = picker, mask, _Logged()
        self._timing, self._clock, self._wall = timing, clock, wall
        self._interest = interest or Interest()
        self._reading = threading.RLock()
        self._started = self._flushed = clock()
        self._seen: list[Point] = []  # never changed, only replaced: readers need no lock
        self._closed = False  # the process has exited
        self.observer: Callable[[list[Point]], None] = lambda points: None  # sees points as they come
        self.shown: Callable[[list[Point]], None] = lambda points: None  # the same, and the worker's own
        self.tail = b""  # the end of what the process itself printed
        self.moved = clock()  # when anything new was last seen
        self.steps = 0
        self.measured = False  # whether a first point has come

    def pump(self) -> None:
        """Read what is new, and send it if it is time; what cannot be sent goes with the next."""
        self._read()
        due = not self._outbox.empty and self._clock() - self._flushed >= self._interval()
        if due or self._outbox.held > PIECE:
            try:
                self.flush()
            except StoreError:
                self._flushed = self._clock()

    def flush(self) -> None:
        """All that was printed and measured until now into the store; raises if it cannot be reached."""
        self._flushed = self._clock()
        end = self._log.size()
        self._read()
        self._outbox.send()
        while self._log.at < end:
            self._read()
            self._outbox.send()

    def covered(self, logged: int | None = None) -> dict[str, Any]:
        """What a checkpoint covers, once it is in the store: all that was printed and measured until now, or
        no more than the first `logged` points that the library logged."""
        with self._reading:
            self.flush()
            position = self._outbox.position if logged is None else self._logged.position(logged)
            return {"position": position, "metric_step": self.steps, "totals": self.totals()}

    def finish(self) -> None:
        """The process has exited: take the rest of both files in."""
        self._closed = True
        self._read()

    def note(self, line: str) -> None:
        """A line of the worker's own in the run's log."""
        self._outbox.add_text(f"[hostler] {self.hide(line)}\n".encode("utf-8", "surrogateescape"))

    def hide(self, text: str) -> str:
        """The text without secret values."""
        return self._mask.cover(text)

    def add(self, point: Point) -> None:
        """A point of the worker's own: use of CPU, memory, GPU."""
        self._outbox.add_points([point])
        self.shown([point])

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
        return summary(self._seen)

    def _read(self) -> None:
        with self._reading:
            while self._outbox.held < HELD and (piece := self._log.read(PIECE)):
                self.moved = self._clock()
                self._keep(self._mask.feed(piece))
                self._take(self._picker.feed(piece, self._wall()))
            if self._closed and self._outbox.held < HELD:
                self._keep(self._mask.flush())
                self._take(self._picker.close(self._wall()))
            while points := self._metrics.read():
                self.moved = self._clock()
                begin = self._take(points)
                if self._metrics.is_first:
                    self._logged.add(begin, len(points))

    def _keep(self, text: bytes) -> None:
        if text:
            self._outbox.add_text(text)
            self.tail = (self.tail + text)[-TAIL:]

    def _take(self, points: list[Point]) -> int:
        begin = self._outbox.add_points(points)
        self.measured = self.measured or bool(points)
        self.observer(points)
        self.shown(points)
        for point in points:
            self.steps = max(self.steps, point.step)
        self._seen = _thin(self._seen + points)
        return begin

    def _interval(self) -> float:
        age = self._clock() - self._started
        usual = min(self._timing.flush_max, max(self._timing.flush, age / 200))
        return min(usual, self._timing.beat) if self._interest.shown else usual


class _Logged:
    """Where, among all points of an attempt, those are that the library logged."""

    def __init__(self) -> None:
        self._runs: list[tuple[int, int, int]] = []  # first of them, its place among all, how many follow on
        self._count = 0

    def add(self, place: int, count: int) -> None:
        last = self._runs[-1] if self._runs else None
        if last and last[1] + last[2] == place:
            self._runs[-1] = (last[0], last[1], last[2] + count)
        else:
            self._runs.append((self._count, place, count))
        self._count += count

    def position(self, logged: int) -> int:
        """How many points of the attempt end with this many of the library's."""
        for first, place, count in reversed(self._runs):
            if logged > first:
                return place + min(logged - first, count)
        return 0


class _Follower:
    """A growing file, read from where the last read ended."""

    def __init__(self, path: Path) -> None:
        self._path, self.at = str(path), 0

    def read(self, size: int) -> bytes:
        """The next piece; empty if there is none now. Nothing new costs one look at the file."""
        if self.size() <= self.at:
            return b""
        with open(self._path, "rb", buffering=0) as file:
            data = os.pread(file.fileno(), size, self.at)
        self.at += len(data)
        return data

    def size(self) -> int:
        try:
            return os.stat(self._path).st_size
        except FileNotFoundError:
            return 0


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
