"""The uploader brings points and output of an attempt into the store, in fragments, while it runs.

The local files are the buffer: while the store cannot be reached nothing is dropped, it waits on disk. Taking
a point or a line in never waits for the store. A fragment whose answer was lost goes again with the same
bytes under the same number. Fragments come often at first and more rarely as the run grows old, so that weeks
make thousands of objects, not millions; while somebody looks, with every beat.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from hostler.errors import StoreError
from hostler.frozen import dataclass
from hostler.records.interest import Interest
from hostler.records.series.metrics import MetricWriter, Origin, add_up, summary
from hostler.records.series.points import Point, PointFolder
from hostler.settings import Timing

if TYPE_CHECKING:
    from hostler.records.series.logs import LogWriter

PIECE = 1 << 20
HELD = 16 * PIECE  # read ahead of the store; the rest waits in the file
TAIL = 64_000


class Mask(Protocol):
    """Takes secret values out of text."""

    def feed(self, piece: bytes) -> bytes: ...

    def flush(self) -> bytes: ...

    def cover(self, text: str) -> str: ...


class PointFinder(Protocol):
    """Finds points in printed lines."""

    def feed(self, piece: bytes, now: float) -> list[Point]: ...

    def close(self, now: float) -> list[Point]: ...

    def continue_from(self, step: int, rounds: int = 0) -> None: ...

    def settle(self) -> list[Point]:
        """Points that wait for what comes next."""

    def stand_down(self) -> None:
        """The script logs by itself."""

    @property
    def recognised(self) -> list[str]:
        """Metrics that lines of common tools held."""


@dataclass(frozen=True)
class ProcessOutput:
    """The output of a process: the file it is printed to, and the way from there to the store."""

    file: Path
    writer: LogWriter
    picker: PointFinder
    mask: Mask


class Uploader:
    """Points and output of an attempt on their way to the store. Safe to use from several threads."""

    def __init__(
        self,
        points: Path,
        writer: MetricWriter,
        timing: Timing,
        clock: Callable[[], float],
        wall: Callable[[], float],
        interest: Interest | None = None,
        output: ProcessOutput | None = None,
        known: Sequence[Point] = (),
    ) -> None:
        """`points`: the file that rank 0 logs to. `output`: None where nobody captures what is printed.
        `known`: points that the store has already, all of the attempt, in order."""
        self._points, self._writer, self._output = PointFolder(points), writer, output
        self._log = _Follower(output.file) if output else None
        self._queue = _UploadQueue(writer, output.writer if output else None, known)
        self._logged = _Logged()
        self._timing, self._clock, self._wall = timing, clock, wall
        self._interest = interest or Interest()
        self._reading = threading.RLock()
        self._started = self._flushed = clock()
        self._exited = False
        self._is_read = False  # all that the process left; nothing of it comes after that
        self.totals: dict[str, dict[str, float]] = {}  # never changed, only replaced: readers need no lock
        self.use: dict[
            str, float
        ] = {}  # of CPU, memory and GPU, as last measured; never changed, only replaced
        self.observer: Callable[[list[Point]], None] = lambda points: None  # sees points as they come
        self.shown: Callable[[list[Point]], None] = lambda points: None  # the same, and the worker's own
        self.tail = b""  # the end of what the process itself printed
        self.moved = clock()  # when anything new was last seen
        self.steps = 0
        self.measured = False  # whether a first point has come
        self._told = bool(known)  # whether the log says that metrics were read from the output

    def tick(self) -> None:
        """Read what is new, and send it if it is time; raises if the store cannot be reached, and what could
        not be sent goes with a later tick."""
        self._read()
        due = not self._queue.empty and self._clock() - self._flushed >= self._interval()
        if due or self._queue.held > PIECE:
            self.flush()

    def try_tick(self) -> None:
        """A tick that may fail."""
        try:
            self.tick()
        except StoreError:
            self._flushed = self._clock()

    def flush(self) -> None:
        """All that was printed and measured until now into the store; raises if it cannot be reached."""
        self._flushed = self._clock()
        end = self._log.size() if self._log else 0
        self._read()
        self._queue.send()
        while self._log and self._log.at < end:
            self._read()
            self._queue.send()

    def covered(self, logged: int | None = None) -> dict[str, Any]:
        """The reach of a checkpoint, once it is in the store: all that was printed and measured until now, or
        no more than the first `logged` points that the library logged."""
        with self._reading:
            self._read()
            if self._output:
                self._take(self._output.picker.settle())
            self.flush()
            printed = logged is None or self._logged.empty  # the library saves, and logs nothing
            position = self._writer.position if printed else self._logged.position(logged or 0)
            return {"position": position, "metric_step": self.steps, "totals": self.totals}

    def exited(self) -> None:
        """The process has exited: take the rest of both files in."""
        self._exited = True
        self._read()

    def pack(self) -> None:
        """Make one object of all points, once nothing more will come."""
        self._writer.pack()

    def note(self, line: str) -> None:
        """A line of the worker's own in the run's log."""
        text = f"[hostler] {self.hide(line)}\n".encode("utf-8", "surrogateescape")
        self._queue.add_line(text, apart=not self._exited)

    def hide(self, text: str) -> str:
        """The text without secret values."""
        return self._output.mask.cover(text) if self._output else text

    def add(self, point: Point) -> None:
        """A point of the worker's own: use of CPU, memory, GPU."""
        self._queue.add_points([point])
        self.use = dict(point.values)
        self.shown([point])

    def start_over(self) -> None:
        """The attempt begins at the beginning: what attempts before it measured is not of its curve."""
        self._writer.continue_from(None)

    def continue_from(self, origin: Origin, covered: Mapping[str, Any], rounds: int = 0) -> None:
        """The attempt goes on from a checkpoint that covers this much. `rounds`: of a boosted model in it."""
        self._writer.continue_from(origin)
        self.count_on(covered, rounds)

    @property
    def recognised(self) -> list[str]:
        """Metrics that were read from lines of common tools."""
        return self._output.picker.recognised if self._output else []

    def count_on(self, covered: Mapping[str, Any], rounds: int = 0) -> None:
        """Count steps and totals on from those of the checkpoint that the attempt went on from."""
        self.steps = int(covered.get("metric_step", 0))
        self.totals = {name: dict(row) for name, row in covered.get("totals", {}).items()}
        if self._output:
            self._output.picker.continue_from(self.steps + 1, rounds)
        self._told = bool(self.totals)

    @property
    def curve(self) -> list[Point] | None:
        """All points of the run that are in the store; None where they are only there."""
        return self._writer.whole

    def last_values(self) -> dict[str, float]:
        """The newest value of each of the first 50 metrics, and what is used now, for the heartbeat."""
        return {name: row["last"] for name, row in list(self.totals.items())[:50]} | self.use

    def _read(self) -> None:
        with self._reading:
            exited = self._exited  # before the files are read: what came until then is read, too
            if self._is_read and (self._log is None or self._log.size() <= self._log.at):
                return
            while points := self._points.read():
                self.moved = self._clock()
                places = self._take(points)
                if self._output:
                    self._output.picker.stand_down()
                if self._points.is_first:
                    for place, count in places:
                        self._logged.add(place, count)
            if self._output and self._log:
                self._read_output(self._output, self._log)
            self._is_read = exited and self._queue.held < HELD

    def _read_output(self, output: ProcessOutput, log: _Follower) -> None:
        while self._queue.held < HELD and (piece := log.read(PIECE)):
            self.moved = self._clock()
            self._keep(output.mask.feed(piece))
            self._take(output.picker.feed(piece, self._wall()))
        self._take(output.picker.feed(b"", self._wall()))
        if self._exited and self._queue.held < HELD:
            self._keep(output.mask.flush())
            self._take(output.picker.close(self._wall()))
        if not self._told and (names := output.picker.recognised):
            self._told = True
            self.note(f"metrics read from the output: {', '.join(names)} (turn off: metrics: none)")

    def _keep(self, text: bytes) -> None:
        if text:
            self._queue.add_text(text)
            self.tail = (self.tail + text)[-TAIL:]

    def _take(self, points: list[Point]) -> list[tuple[int, int]]:
        places = self._queue.add_points(points)
        if points:
            self.measured = True
            self.observer(points)
            self.shown(points)
            self.steps = max(self.steps, max(point.step for point in points))
            self.totals = add_up(self.totals, summary(points))
        return places

    def _interval(self) -> float:
        age = self._clock() - self._started
        usual = min(self._timing.flush_max, max(self._timing.flush, age / 200))
        return min(usual, self._timing.beat) if self._interest.shown else usual


class _UploadQueue:
    """Text and points on their way to the store, in order, each once. Filling it never waits for that."""

    def __init__(self, points: MetricWriter, text: LogWriter | None, known: Sequence[Point]) -> None:
        self._point_writer, self._text_writer = points, text
        self._known: dict[tuple[object, ...], list[int]] = {}  # places of points in the store, the last first
        for place in range(len(known) - 1, -1, -1):
            self._known.setdefault(_content(known[place]), []).append(place)
        self._filling, self._sending = threading.Lock(), threading.RLock()
        self._text: list[bytes] = []
        self._ended = True  # whether the text so far ends with a line
        self._points: list[Point] = []
        self._added = len(known)
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

    def add_text(self, text: bytes) -> None:
        with self._filling:
            self._text.append(text)
            self._ended = text.endswith(b"\n")

    def add_line(self, line: bytes, *, apart: bool) -> None:
        """Add a line that is not the process's. `apart`: that may go on with its last line, so this one goes
        before it, unless it was sent already."""
        with self._filling:
            text = b"".join(self._text)
            at = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1 if apart else 0
            before, rest = (text[:at], text[at:]) if at else (text, b"")
            ended = before.endswith(b"\n") if before else self._ended
            self._text = [before + (b"" if ended else b"\n") + line + rest]
            self._ended = not rest

    def add_points(self, points: list[Point]) -> list[tuple[int, int]]:
        """Returns their numbers within the attempt: the first of each stretch, and how many follow on."""
        with self._filling:
            if not self._known:
                self._points += points
                self._added += len(points)
                return [(self._added - len(points), len(points))]
            return [(self._place(point), 1) for point in points]

    def _place(self, point: Point) -> int:
        """The number of a point, which is added unless the store has it."""
        if places := self._known.get(_content(point)):
            return places.pop()
        self._points.append(point)
        self._added += 1
        return self._added - 1

    def send(self) -> None:
        """All of it into the store; raises if that cannot be reached, and nothing is lost."""
        with self._sending:
            while self._text_writer and self._next_text():
                self._text_writer.write(self._sent_text)
                self._sent_text = b""
            while self._next_points():
                self._point_writer.write(self._sent_points)
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


def _content(point: Point) -> tuple[object, ...]:
    """A point but for its time: one that was printed gets another when it is read again."""
    return point.step, *((name, repr(float(value))) for name, value in sorted(point.values.items()))


class _Logged:
    """Where, among all points of an attempt, those are that the library logged."""

    def __init__(self) -> None:
        self._runs: list[tuple[int, int, int]] = []  # first of them, its place among all, how many follow on
        self._count = 0

    @property
    def empty(self) -> bool:
        return not self._count

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
