"""The watch over a running process: stop requests, the time limit, hanging, memory.

A stop request becomes a file in the run's folder. A process that uses the library reads it
and leaves by itself; one that does not gets SIGTERM at once. A process that is still there after the grace is
killed. It has a thread of its own besides, which never waits for the store: a notice of preemption is
passed on while an upload hangs.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import Protocol

from hostler.attempt.uploader import Uploader
from hostler.attempt.usage import Usage, over_memory
from hostler.records.run.handoff import Handoff
from hostler.settings import Timing
from hostler.spec.job import Job
from hostler.spec.states import stop_reason
from hostler.worker.process.process import Process
from hostler.worker.run.conclude import ORPHANED, RANK_LOST

BESIDES = 1.0  # seconds between two looks of its own thread
ORPHAN_GRACE = 3.0  # nothing of a run may outlive its worker's parent by more than 5 seconds


class Moves(Protocol):
    """A watcher of the checkpoint folder."""

    @property
    def moved(self) -> float: ...


class Watchman:
    def __init__(
        self,
        job: Job,
        folder: Handoff,
        uploader: Uploader,
        saver: Moves,
        process: Process,
        timing: Timing,
        clock: Callable[[], float],
        spent: float = 0.0,
        *,
        stop: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._job, self._folder, self._process = job, folder, process
        self._uploader, self._saver = uploader, saver
        self._timing, self._clock = timing, clock
        self._started = clock()
        self._spent = spent  # seconds that earlier attempts of the run took
        self._wanted = stop  # the reason of a stop request, once there is one
        self._lock, self._over = threading.RLock(), threading.Event()
        self._asked: float | None = None  # when the process was asked to stop
        self._grace = timing.grace
        self._termed = False
        self.killed_for: str | None = None

    @property
    def asked(self) -> bool:
        """Whether the process knows that it should stop."""
        return self._asked is not None

    @property
    def has_signalled(self) -> bool:
        """Whether the process was sent SIGTERM."""
        return self._termed

    def start(self) -> None:
        every = max(BESIDES, self._timing.poll)
        threading.Thread(target=self._besides, args=(every,), name="watchman", daemon=True).start()

    def stop(self) -> None:
        self._over.set()

    def check(self, *, read: bool = True) -> None:
        """Whether it should go on. `read`: its output was read just now, so silence means something."""
        with self._lock:
            now, stop = self._clock(), self._wanted()
            if stop is None and self.killed_for is None:
                self.killed_for = self._time(now) or (self._silence(now) if read else None)
            if stop or self.killed_for:
                self._stop(stop or self.killed_for or "", now)

    def _besides(self, every: float) -> None:
        while not self._over.wait(every):
            self.check(read=False)

    def weigh(self, use: Usage) -> None:
        """Over its memory: killed at once, before the machine's other runs suffer."""
        if over_memory(use, self._job.resources.memory) and self.killed_for is None:
            self.killed_for = "memory"
            self._process.kill()

    def _time(self, now: float) -> str | None:
        limit = self._job.limits.time
        return "time" if limit is not None and self._spent + now - self._started >= limit else None

    def _silence(self, now: float) -> str | None:
        """A slow start is not a hang: before the first metric or checkpoint, imports, downloads and compilers
        may be silent for as long as a start may take, whatever was printed before."""
        limits = self._job.limits
        if limits.hang is None:
            return None
        began = self._uploader.measured or self._saver.moved > self._started
        if not began and now - self._started < max(limits.start, limits.hang):
            return None
        moved = max(self._uploader.moved, self._saver.moved)
        if moved <= self._started:
            return "start"
        return "hang" if now - moved >= limits.hang else None

    def _stop(self, reason: str, now: float) -> None:
        if self._asked is None:
            self._asked = now
            short = reason in (ORPHANED, RANK_LOST)
            self._grace = min(ORPHAN_GRACE, self._timing.grace) if short else self._timing.grace
            self._folder.request_stop(reason)
            self._uploader.note(f"asked to stop: {stop_reason(reason)}")
        waited = now - self._asked
        if not self._termed and (not self._folder.joined.exists() or waited >= 0.8 * self._grace):
            self._termed = True
            self._process.signal(signal.SIGTERM)
        if waited >= self._grace:
            self._process.kill()
