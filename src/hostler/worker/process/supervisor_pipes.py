"""Two pipes that connect a worker with the supervisor of a run.

The worker holds the lifeline's write end: when it closes, every process of the run is killed. The
supervisor alone holds the report's write end: when that closes, it is done with the run, or dead.
"""

from __future__ import annotations

import errno
import os
import select
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from hostler.errors import MachineError, PrepareError
from hostler.worker.process import spawning
from hostler.worker.process.spawning import Supervisor, Supervisors


@dataclass(frozen=True)
class CommandSpec:
    """A command and its surroundings. `env` holds the mark."""

    argv: Sequence[str]
    cwd: Path
    env: Mapping[str, str]
    folder: Path
    log: Path
    mark: str
    script_at: int = 0  # which word of argv is the script: for a warm parent's supervisors


@dataclass
class SupervisorPipes:
    """The worker's ends. Descriptors are -1 once closed."""

    lifeline: int
    report: int
    supervisor: Supervisor
    pool: Supervisors | None  # where it is given back to; None: nobody else's

    def hang_up(self) -> None:
        if self.lifeline >= 0:
            os.close(self.lifeline)
            self.lifeline = -1

    def close(self) -> None:
        self.hang_up()
        if self.report >= 0:
            os.close(self.report)
            self.report = -1

    def done(self, *, kept: bool) -> None:
        """The supervisor has let go of the run. `kept`: it may have another one."""
        self.hang_up()
        if kept and self.pool:
            self.pool.give_back(self.supervisor)
            return
        self.supervisor.close()
        if self.supervisor.popen:
            self.supervisor.popen.wait()

    def waits(self, seconds: float | None) -> bool:
        """Whether there is something to read, or the end of it, within these seconds."""
        if self.report < 0:
            return True
        poll = select.poll()
        poll.register(self.report, select.POLLIN)
        return bool(poll.poll(None if seconds is None else max(0.0, seconds) * 1000))

    def read(self) -> bytes | None:
        """Bytes that the supervisor has written; None: nothing yet; empty: it has ended."""
        if self.report < 0:
            return b""
        try:
            return os.read(self.report, 65536)
        except BlockingIOError:
            return None


def open_line(
    wanted: CommandSpec, python: str | None = None, pool: Supervisors | None = None
) -> SupervisorPipes:
    """Have a supervisor begin: of these, or a new program of this Python."""
    pool = None if python else pool or spawning.shared()
    if not wanted.cwd.is_dir():
        raise not_started(errno.ENOENT, wanted)
    theirs, lifeline = os.pipe()
    report, their_report = os.pipe()
    os.set_blocking(report, False)
    output = os.open(wanted.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    descriptors = (theirs, their_report, output)
    try:
        supervisor = _asked(wanted, descriptors, pool, python)
    except OSError as error:
        os.close(lifeline)
        os.close(report)
        raise not_started(error.errno or 0, wanted, python) from error
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    return SupervisorPipes(lifeline, report, supervisor, pool)


def not_started(number: int, wanted: CommandSpec, python: str | None = None) -> MachineError | PrepareError:
    if number == errno.E2BIG:
        return PrepareError(
            "command line and environment are longer than this machine allows",
            hint="let the script read its parameters from the JSON file at $HOSTLER_PARAMS",
        )
    if not wanted.cwd.is_dir():
        return PrepareError(f"the working folder {wanted.cwd} does not exist")
    return MachineError(
        f"{python or spawning.python()} could not be started: {os.strerror(number)}",
        hint="check that this Python is still installed",
    )


def _asked(
    wanted: CommandSpec, descriptors: tuple[int, int, int], pool: Supervisors | None, python: str | None
) -> Supervisor:
    request = {
        "argv": list(wanted.argv),
        "cwd": str(wanted.cwd),
        "env": dict(wanted.env),
        "folder": str(wanted.folder),
        "mark": wanted.mark,
        "script_at": wanted.script_at,
    }
    if pool:
        return pool.lend(request, descriptors, wanted.folder)
    supervisor = spawning.program(python or spawning.python(), wanted.folder)
    with suppress(BrokenPipeError):  # it has died already, and the report will say so
        supervisor.send(request, descriptors)
    return supervisor
