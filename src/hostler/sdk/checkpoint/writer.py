"""Writes checkpoints in its own thread, one at a time; the caller never waits.

One more may wait for its turn: the newest. One that has not been begun goes when a newer one comes. There is
a thread while there is something to write.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Job = TypeVar("Job")


class Writer(Generic[Job]):
    def __init__(self, write: Callable[[Job], None], tidy: Callable[[], None] = lambda: None) -> None:
        """`tidy` is called when one has been written, and nobody waits for it."""
        self._write, self._tidy = write, tidy
        self._turn = threading.Condition()
        self._writing: Job | None = None
        self._waiting: Job | None = None
        self._replacing = False  # what waited was taken back, and its successor is not there yet
        self._given = self._settled = 0  # how many were given; up to which all are written, or replaced
        self._pid = os.getpid()

    @property
    def busy(self) -> bool:
        return self._settled < self._given and self._pid == os.getpid()

    def withdraw(self) -> Job | None:
        """Take back what waits: another is about to be given, or `give_up`. Returns what is being written."""
        with self._turn:
            self._waiting, self._replacing = None, True
            return self._writing

    def give_up(self) -> None:
        """Nothing comes in the place of what was taken back."""
        with self._turn:
            self._replacing = False
            self._settled = self._settled if self._writing is not None else self._given
            self._turn.notify_all()

    def give(self, job: Job) -> int:
        """Have it written as soon as nothing else is. Returns its number, for `wait`."""
        with self._turn:
            self._given, self._replacing = self._given + 1, False
            number = self._given
            if self._writing is not None:
                self._waiting = job
                return number
            self._writing = job
        self._start(job, number)
        return number

    def wait(self, timeout: float | None = None, number: int | None = None) -> bool:
        """Until all, or all up to this number, are written; False if it took longer."""
        if self._pid != os.getpid():
            return True  # a fork has no such thread
        with self._turn:
            wanted = self._given if number is None else number
            return self._turn.wait_for(lambda: self._settled >= wanted, timeout)

    def _start(self, job: Job, number: int) -> None:
        words = (job, number)
        try:
            threading.Thread(target=self._work, args=words, name="hostler-checkpoint", daemon=True).start()
        except RuntimeError:  # no more threads, or the process is at its end
            self._work(*words)

    def _work(self, job: Job, number: int) -> None:
        """Write it, and have what waits written by the next thread, whatever becomes of this one."""
        try:
            self._write(job)
        finally:
            with self._turn:
                following, self._waiting = self._waiting, None
                owed = following is not None or self._replacing
                self._settled = number if owed else self._given
                self._writing, newest = following, self._given
                self._turn.notify_all()
            if following is not None:
                self._start(following, newest)
        self._tidy()
