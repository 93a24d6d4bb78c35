"""What connects a worker with the supervisor of one run: two pipes, made here, and ends that are told.

The worker holds the lifeline's write end: when it closes, every process of the run is killed. The
supervisor alone holds the report's write end: when that closes, the supervisor has ended.
"""

from __future__ import annotations

import errno
import os
import select
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from hostler.errors import MachineError, PrepareError
from hostler.worker import spawning
from hostler.worker.spawning import Spawner


@dataclass(frozen=True)
class Wanted:
    """A command and its surroundings. `env` holds the mark."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    folder: Path
    log: Path
    mark: str


@dataclass
class Line:
    """The worker's ends. Descriptors are -1 once closed."""

    lifeline: int
    report: int
    popen: subprocess.Popen[bytes] | None = None  # the supervisor, if it is a child of ours
    spawner: Spawner | None = None  # who was asked to fork it

    def hang_up(self) -> None:
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1

    def close(self) -> None:
        self.hang_up()
        if self.report >= 0:
            os.close(self.report)
            self.report = -1

    def waits(self, seconds: float | None) -> bool:
        """Whether there is something to read, or the end of it, within these seconds."""
        if self.report < 0:
            return True
        poll = select.poll()
        poll.register(self.report, select.POLLIN)
        return bool(poll.poll(None if seconds is None else max(0.0, seconds) * 1000))

    def read(self) -> bytes | None:
        """What the supervisor has written; None: nothing yet; empty: it has ended."""
        if self.report < 0:
            return b""
        try:
            return os.read(self.report, 65536)
        except BlockingIOError:
            return None


def open_line(wanted: Wanted, python: str | None) -> Line:
    """Start a supervisor: by this Python, or forked where that is safe."""
    if not wanted.cwd.is_dir():
        raise not_started(errno.ENOENT, wanted)
    theirs, lifeline = os.pipe()
    report, their_report = os.pipe()
    os.set_blocking(report, False)
    output = os.open(wanted.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    line = Line(lifeline, report)
    descriptors = (theirs, their_report, output)
    try:
        line.spawner = spawning.shared() if python is None else None
        if line.spawner:
            _fork(line.spawner, wanted, descriptors)
        else:
            line.popen = _execute(python or spawning.python(), wanted, descriptors)
    except OSError as error:
        line.close()
        raise not_started(error.errno or 0, wanted, python) from error
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return line


def not_started(number: int, wanted: Wanted, python: str | None = None) -> MachineError | PrepareError:
    if number == errno.E2BIG:
        return PrepareError(
            "command line and environment are longer than this machine allows",
            hint="let the script read its parameters from the JSON file at $HOSTLER_PARAMS",
        )
    if not wanted.cwd.is_dir():
        return PrepareError(f"the working folder {wanted.cwd} does not exist")
    return MachineError(
        f"{python or spawning.python()} could not be started: {os.strerror(number)}",
        hint="is this Python still installed?",
    )


def _fork(spawner: Spawner, wanted: Wanted, descriptors: tuple[int, int, int]) -> None:
    request = {
        "argv": list(wanted.argv),
        "cwd": str(wanted.cwd),
        "env": dict(wanted.env),
        "folder": str(wanted.folder),
        "mark": wanted.mark,
    }
    spawner.ask(request, descriptors, wanted.folder)


def _execute(python: str, wanted: Wanted, descriptors: tuple[int, int, int]) -> subprocess.Popen[bytes]:
    lifeline, report, log = descriptors
    program = spawning.programs(wanted.folder, "supervisor.py")
    return subprocess.Popen(
        [python, "-I", "-S", program, str(wanted.folder), str(report), *wanted.argv],
        stdin=lifeline,
        stdout=log,
        stderr=log,
        cwd=wanted.cwd,
        env=wanted.env,
        pass_fds=[report],
        start_new_session=True,
    )
