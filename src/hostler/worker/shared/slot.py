"""A run's slot in a shared process: to its execution it is a process of its own.

It ends when its run has left the process (`seat.json`), or with the process itself; then it gets what that
printed last. Killing it asks the run to leave, and waits a little: others sit in the same process. One look
at all of them (`SlotLooks`) serves whoever waits: a hundred threads that each open a file would keep each
other from working.
"""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeVar

from hostler.attempt.nvml import GPU
from hostler.attempt.usage import Usage
from hostler.records.run import handoff
from hostler.records.run.handoff import Handoff
from hostler.worker.process.group import PATIENCE
from hostler.worker.process.process import Process
from hostler.worker.run.exit import Exit

T = TypeVar("T")
LOOK = 0.05  # seconds between two looks while somebody waits
FEW = 8  # runs that may each wake up as often as that: of more, any of them looks for all
AGE = 0.5  # seconds for which a look at the use of a process serves all of its runs
TAIL = 1 << 16  # bytes of what the process printed that each of its runs is told
KILLED = "killed"  # the reason of a stop request to a run whose place is taken away


class SharedAnswer(Generic[T]):
    """An answer that costs something, for many threads: nobody gets one that was asked for before `age`
    seconds ago; whoever comes while somebody asks waits for that, or for the next."""

    def __init__(
        self, ask: Callable[[], T], age: float = 0.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._ask, self._age, self._clock = ask, age, clock
        self._lock = threading.Lock()
        self._found: tuple[float, T] | None = None  # when it was asked for, and the answer

    def get(self) -> T:
        oldest = self._clock() - self._age
        with self._lock:
            if self._found is None or self._found[0] < oldest:
                asked = self._clock()
                self._found = (asked, self._ask())
            return self._found[1]


class SlotLooks:
    """What all runs of one process want to know of it, looked up once for all of them."""

    def __init__(self, process: Process, clock: Callable[[], float] = time.monotonic) -> None:
        self._process, self._clock = process, clock
        self._watched: dict[Path, threading.Event] = {}
        self._next = -math.inf  # when somebody looks again
        self._lock = threading.Lock()
        self.steady = SharedAnswer(process.steady, clock=clock)  # seen after whoever asks has looked at files
        self._weighing: tuple[Callable[[], Sequence[GPU]], int | None] = (tuple, None)
        self._use = SharedAnswer(lambda: process.use(*self._weighing), AGE, clock)

    def use(self, gpus: Callable[[], Sequence[GPU]], limit: int | None) -> Usage:
        """The use of all of it; its runs have the same devices and the same limit."""
        self._weighing = gpus, limit
        return self._use.get()

    def watch(self, seat: Path) -> threading.Event:
        """Set once something has to be read: this file is there, or the process has ended."""
        with self._lock:
            return self._watched.setdefault(seat, threading.Event())

    def look(self) -> None:
        """By whoever comes first; nobody waits for it, the others find what it found. At most every `LOOK`
        seconds, and for a tenth of the time where files answer slowly."""
        if self._clock() < self._next or not self._lock.acquire(blocking=False):
            return
        try:
            begun = self._clock()
            ended = self._process.poll() is not None
            paths = [seat for seat in self._watched if ended or os.path.exists(seat)]
            for seat in paths:
                self._watched.pop(seat).set()
            now = self._clock()
            self._next = now + max(LOOK, 9 * (now - begun))
        finally:
            self._lock.release()


class SharedSlot(Process):
    """All methods may be called from several threads."""

    def __init__(
        self,
        process: Process,
        folder: Handoff,
        log: Path,
        others: int,
        left: Callable[[], None],
        looks: SlotLooks | None = None,
    ) -> None:
        """`log`: what the process prints. `left` is called when the place is given up. `looks`: those of all
        of its runs."""
        self._process, self._folder, self._log, self._left = process, folder, log, left
        self._looks = looks or SlotLooks(process)
        self._news = self._looks.watch(folder.seat)
        self.others = others  # runs in the same process, when it began
        self.pid, self.group = process.pid, process.group
        self.supervisor, self.supervisor_start = process.supervisor, process.supervisor_start
        self._begun = time.monotonic()
        self._exit: Exit | None = None
        self._lock = threading.RLock()

    @property
    def rejection(self) -> dict[str, Any] | None:
        """The reason the shared process rejected this run; None if it took it."""
        said = (handoff.read(self._folder.seat) or {}).get("apart")
        return said if isinstance(said, dict) else None

    def poll(self) -> Exit | None:
        self._looks.look()
        return self._ended() if self._news.is_set() else self._exit

    def _ended(self) -> Exit | None:
        with self._lock:
            if self._exit is None:
                self._exit = self._own() or self._common()
            return self._exit

    def _own(self) -> Exit | None:
        """It has left by itself."""
        said = handoff.read(self._folder.seat)
        if said is None:
            return None
        return Exit(code=int(said.get("code", 0)), seconds=time.monotonic() - self._begun)

    def _common(self) -> Exit | None:
        """The process has ended, and the run with it."""
        ended = self._process.poll()
        if ended is None or (own := self._own()) is not None:
            return None if ended is None else own
        _append(self._folder.log, _tail(self._log))
        return ended

    def steady(self) -> bool:
        return self._looks.steady.get()

    def use(self, gpus: Callable[[], Sequence[GPU]], limit: int | None) -> Usage:
        return self._looks.use(gpus, limit)

    def wait(self, timeout: float | None = None) -> Exit | None:
        deadline = None if timeout is None else time.monotonic() + timeout
        while (found := self.poll()) is None:
            remaining = LOOK if deadline is None else deadline - time.monotonic()
            if remaining <= 0:
                break
            if self._news.is_set():  # a word that cannot be read: another will come, or the process ends
                time.sleep(min(remaining, LOOK))
            else:
                self._news.wait(min(remaining, LOOK * (1 + self.others / FEW)))
        return found

    def signal(self, number: int) -> bool:
        """Nobody's but the whole process's: a run that should leave reads its stop request."""
        return self.poll() is None

    def kill(self) -> Exit | None:
        if self.poll() is None and not self._folder.stop.exists():
            self._folder.request_stop(KILLED)
        self.wait(PATIENCE)
        with self._lock:
            self._exit = self._exit or Exit(signal=int(signal.SIGKILL))
        self._left()
        return self._exit

    def close(self) -> None:
        self.kill()


def _tail(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL))
            return file.read()
    except OSError:
        return b""


def _append(path: Path, text: bytes) -> None:
    with path.open("ab") as file:
        file.write(text)
