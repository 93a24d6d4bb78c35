"""The process that feeds one tool with the points of one attempt: `python -m hostler.trackers.feeder FOLDER`.

It is a process of its own because nothing a tool does (hang, crash, fill the memory, take signals) may reach
the training, nor the worker beside it. It ends with whoever started it. What went wrong is one line.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from hostler.errors import HostlerError, HostUnreachable
from hostler.records.series.points import Point, PointReader
from hostler.trackers import registry
from hostler.trackers.base import Opened, Tracker
from hostler.trackers.feed_folder import CLOSED, FAILED, OPEN, FeedFolder, FeedState

LOOK = 0.5  # seconds between two looks for new points
TRIES = 5
FIRST, LAST = 5.0, 60.0  # between two flushes: at first, and at most

T = TypeVar("T")


class Feeder:
    def __init__(
        self,
        desk: FeedFolder,
        tracker: Tracker,
        alone: Callable[[], bool],
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`alone`: whether whoever started it is gone."""
        self._desk, self._tracker, self._alone = desk, tracker, alone
        self._sleep, self._clock = sleep, clock
        self._begun = self._flushed = clock()
        self._told = FeedState()

    def run(self) -> bool:
        """Until the attempt is over; False if it was left alone."""
        opened = self._open()
        self._tell(replace(self._told, state=OPEN, url=opened.url, note=opened.note, error=""))
        reader = PointReader(self._desk.points)
        while True:
            over = self._desk.closing()  # before the last look for points
            while points := reader.read():
                self._log(points)
            if over is not None:
                self._tracker.close(over)
                self._tell(replace(self._told, state=CLOSED))
                return True
            if self._alone():
                return False
            self._flush()
            self._sleep(LOOK)

    def fail(self, error: BaseException) -> None:
        self._tell(replace(self._told, state=FAILED, error=one_line(error)))

    def _open(self) -> Opened:
        opening = self._desk.opening()
        return self._insist(lambda: self._tracker.open(opening))

    def _log(self, points: Sequence[Point]) -> None:
        self._insist(lambda: self._tracker.log(points))
        self._tell(replace(self._told, sent=self._told.sent + len(points), error=""))

    def _insist(self, act: Callable[[], T]) -> T:
        """A server that does not answer is asked again; whoever is left alone waits for none."""
        for n in range(TRIES - 1):
            try:
                return act()
            except (HostlerError, ImportError) as error:
                if not isinstance(error, HostUnreachable) or self._alone():
                    raise
                self._tell(replace(self._told, error=one_line(error)))
            except Exception as error:
                if self._alone():
                    raise
                self._tell(replace(self._told, error=one_line(error)))
            self._sleep(2.0**n)
        return act()

    def _flush(self) -> None:
        now = self._clock()
        if now - self._flushed >= min(LAST, max(FIRST, (now - self._begun) / 50)):
            self._flushed = now
            self._tracker.flush()

    def _tell(self, told: FeedState) -> None:
        self._told = told
        self._desk.tell(told)


def one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())  # of several lines, the first often says the least
    said = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return str(error) if isinstance(error, HostlerError) else said[:300]


def main(words: Sequence[str]) -> int:
    desk, parent = FeedFolder(Path(words[0])), os.getppid()
    try:
        os.nice(10)  # the training comes first
        feeder = Feeder(desk, registry.load(desk.opening().kind), lambda: os.getppid() != parent)
    except ImportError as error:
        desk.tell(FeedState(state=FAILED, error=one_line(error)))
        return 1
    try:
        whole = feeder.run()
    except BaseException as error:
        feeder.fail(error)
        raise
    if not whole:
        os._exit(1)  # nothing of the tool's may go on for a run that another worker has by now
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
