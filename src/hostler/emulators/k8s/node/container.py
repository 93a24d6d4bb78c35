"""A run of a container, seen from the cluster: its launcher, its log, its end.

The log keeps the moment of each line. `ended` is set once no process of the run is left and all it printed
is in the log.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostler.emulators.k8s.moment import micro

LAUNCHER = Path(__file__).with_name("launcher.py")
START_ERROR = 128


@dataclass
class Line:
    at: str
    text: bytes


@dataclass
class Log:
    """The output of a run; `grown` is told of every piece and of the end."""

    grown: threading.Condition
    lines: list[Line] = field(default_factory=list)
    closed: bool = False

    def add(self, block: bytes) -> None:
        with self.grown:
            for piece in block.splitlines(keepends=True):
                if self.lines and not self.lines[-1].text.endswith(b"\n"):
                    self.lines[-1].text += piece
                else:
                    self.lines.append(Line(micro(time.time()), piece))
            self.grown.notify_all()


@dataclass(frozen=True)
class LastWords:
    """The file into which a container may write what it has to say of its end."""

    file: Path
    from_log: bool = False  # if it wrote none and failed

    def read(self, run: Container) -> str:
        text = self.file.read_text(errors="replace")[:4096] if self.file.exists() else ""
        if text or not self.from_log or not run.code:
            return text
        tail = b"".join(line.text for line in run.log.lines[-80:])
        return tail.decode(errors="replace")[-2048:]


class Container:
    def __init__(
        self, order: Mapping[str, Any], log: Log, changed: Callable[[], None], words: LastWords | None = None
    ) -> None:
        self.log, self._changed, self._words = log, changed, words
        self.began = time.time()
        self.ended: float | None = None
        self.code = 0
        self.error = ""
        self.message = ""  # its last words
        self.killed = ""  # the reason to give when the cluster itself ended it
        self.pid = 0
        self._writing = threading.Lock()
        self._reports, theirs = os.pipe()
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", str(LAUNCHER), str(theirs)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            pass_fds=[theirs],
            start_new_session=True,
        )
        os.close(theirs)
        self._write(json.dumps(order))
        threading.Thread(target=self._attend, name="k8s-container", daemon=True).start()

    @property
    def running(self) -> bool:
        return self.ended is None

    @property
    def launcher(self) -> int:
        return self._process.pid

    @property
    def reason(self) -> str:
        if self.error:
            return "StartError"
        return self.killed or ("Error" if self.code else "Completed")

    def send(self, number: int) -> None:
        if self.running:
            self._write(str(int(number)))

    def kill(self, reason: str = "") -> None:
        if self.running:
            self.killed = reason
            self._write(str(int(signal.SIGKILL)))

    def close(self) -> None:
        """No process is left when this returns."""
        with self._writing:
            if self._process.stdin is not None and not self._process.stdin.closed:
                with suppress(BrokenPipeError):  # a signal that came after its end is still in the buffer
                    self._process.stdin.close()
        self._process.wait()

    def _write(self, line: str) -> None:
        with self._writing:
            stdin = self._process.stdin
            if stdin is None or stdin.closed:
                return
            try:
                stdin.write(line.encode() + b"\n")
                stdin.flush()
            except BrokenPipeError:
                pass  # it has ended

    def _attend(self) -> None:
        heard, ended = b"", False
        with selectors.DefaultSelector() as both, self._process.stdout or open(os.devnull, "rb") as output:
            both.register(output, selectors.EVENT_READ)
            both.register(self._reports, selectors.EVENT_READ)
            while both.get_map():
                for key, _ in both.select():
                    block = os.read(key.fd, 65536)
                    if not block:
                        both.unregister(key.fileobj)
                    elif key.fd == self._reports:
                        *lines, heard = (heard + block).split(b"\n")
                        for line in lines:
                            ended = self._hear(json.loads(line)) or ended
                    else:
                        self.log.add(block)
        os.close(self._reports)
        self._process.wait()
        self._conclude(ended)

    def _hear(self, report: Mapping[str, Any]) -> bool:
        """True if it tells the end."""
        if "pid" in report:
            self.pid, self.began = report["pid"], time.time()
            self._changed()
        self.error = self.error or report.get("error", "")
        self.code = report.get("code", self.code)
        return "code" in report

    def _conclude(self, told: bool) -> None:
        if self.error:
            self.code = START_ERROR
        elif not told:
            self.code = 128 + signal.SIGKILL
        self.close()
        self.message = self.error or (self._words.read(self) if self._words else "")
        self.ended = time.time()
        with self.log.grown:
            self.log.closed = True
            self.log.grown.notify_all()
        self._changed()
