"""Questions to a program at the far end of a pipe, many at a time; each answer finds who asked.

An error of the far side arrives as the same class here. When the pipe ends, everybody who waits is told
(Cut): what was asked may or may not have been done.
"""

from __future__ import annotations

import itertools
import subprocess
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from concurrent.futures import TimeoutError as Late
from typing import Any

from hostler import errors
from hostler.errors import HostlerError
from hostler.remote import frames
from hostler.remote.frames import Frame


class Cut(Exception):
    """The connection ended, or no answer came in time."""


class Channel:
    """`facts` is what the far side said of itself when it was ready."""

    def __init__(self, process: subprocess.Popen[bytes], facts: Mapping[str, Any]) -> None:
        self.facts = facts
        self._process = process
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Future[Frame]] = {}
        self._lock = threading.Lock()
        self._writing = threading.Lock()
        self._open = True
        self._thread = threading.Thread(target=self._receive, name="channel", daemon=True)
        self._thread.start()

    @property
    def is_open(self) -> bool:
        return self._open

    def ask(self, op: str, body: bytes = b"", *, timeout: float, **fields: Any) -> Frame:
        """The answer; the far side's own error, or Cut."""
        future = self.send(op, body, **fields)
        return self.wait(future, timeout)

    def send(self, op: str, body: bytes = b"", **fields: Any) -> Future[Frame]:
        number, future = next(self._numbers), Future[Frame]()
        with self._lock:
            if not self._open:
                raise Cut("the connection has ended")
            self._waiting[number] = future
        assert self._process.stdin is not None
        try:
            with self._writing:
                frames.write(self._process.stdin, Frame({"id": number, "op": op, **fields}, body))
        except (OSError, ValueError) as error:
            self.close()
            raise Cut(str(error)) from error
        return future

    def wait(self, future: Future[Frame], timeout: float) -> Frame:
        try:
            answer = future.result(timeout)
        except Late:
            self.close()
            raise Cut("no answer came in time") from None
        if "error" in answer.header:
            raise _error(answer.header)
        return answer

    def close(self) -> None:
        """End it; the far side ends when its input does. A second call does nothing."""
        with self._lock:
            self._open = False
            waiting, self._waiting = list(self._waiting.values()), {}
        for future in waiting:
            future.set_exception(Cut("the connection has ended"))
        self._process.kill()
        if threading.current_thread() is not self._thread:
            self._let_go()

    def hang_up(self) -> None:
        """End it as its far side expects, by the end of its input."""
        try:
            if self._process.stdin is not None:
                self._process.stdin.close()
            self._process.wait(2.0)
        except (OSError, ValueError, subprocess.TimeoutExpired):
            pass
        self.close()

    def _receive(self) -> None:
        assert self._process.stdout is not None
        try:
            while frame := frames.read(self._process.stdout):
                with self._lock:
                    future = self._waiting.pop(frame.header.get("id", 0), None)
                if future is not None:
                    future.set_result(frame)
        except (OSError, ValueError):
            pass
        self.close()
        self._let_go()

    def _let_go(self) -> None:
        self._process.wait()
        if self._process.stdin is not None:
            try:
                self._process.stdin.close()
            except OSError:
                pass


def _error(header: Mapping[str, Any]) -> HostlerError:
    kind = getattr(errors, str(header["error"]), None)
    if not (isinstance(kind, type) and issubclass(kind, HostlerError)):
        kind = HostlerError
    made: HostlerError = kind(str(header["message"]), str(header.get("hint", "")))
    return made
