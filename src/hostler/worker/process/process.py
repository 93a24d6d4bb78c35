"""A user's process, as its worker holds it: start, look, signal, kill.

The worker never forks: one of its supervisors (`spawning.py`) does, and the worker holds one end of each of
two pipes. It holds the lifeline's write end: when that closes, as `kill` hangs up or the worker dies, every
process of the run is killed. The supervisor alone holds the report's write end: when that closes, it is done
with the run, or dead. All methods may be called from several threads.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import select
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostler import env as environment
from hostler import proctable
from hostler.attempt.nvml import GPU
from hostler.attempt.usage import Usage, sample
from hostler.errors import MachineError, PrepareError
from hostler.worker.process import spawning
from hostler.worker.process.group import PATIENCE, ProcessGroup
from hostler.worker.process.spawning import Supervisor, Supervisors
from hostler.worker.run.exit import Exit, from_report

__all__ = ["Exit", "Process"]

LATE = 10.0  # seconds after which a supervisor that has not begun is given up


class Process:
    """A running command, and every process it has started."""

    others = 0  # runs that share it
    gone = False  # it has ended, and by its supervisor's word no process of the run is left

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        folder: Path,
        log: Path,
        python: str | None = None,
        pool: Supervisors | None = None,
        script_at: int = 0,
    ) -> Process:
        """Start a command; what it prints is appended to `log`, its facts are left in `folder`. `python`:
        run the supervisor as a program of this Python. `pool`: take one of these supervisors, for which
        word `script_at` of the command is a script."""
        _check(argv, env)
        mark = secrets.token_hex(8)
        spec = CommandSpec(
            argv, cwd, {**env, environment.MARK: mark}, folder.absolute(), log, mark, script_at
        )
        return cls(open_line(spec, python, pool), spec)

    def __init__(self, line: SupervisorPipes, wanted: CommandSpec) -> None:
        self._line, self._wanted = line, wanted
        self._begun = time.monotonic()
        self._lock = threading.RLock()
        self._exit: Exit | None = None
        self._pending = b""
        first = self._first_line()
        self.pid = int(first.get("pid", 0))
        line.supervisor.pid = int(first.get("supervisor", 0)) or line.supervisor.pid
        line.supervisor.start = first.get("supervisor_start") or line.supervisor.start
        self.supervisor, self.supervisor_start = line.supervisor.pid, line.supervisor.start
        self.group = ProcessGroup(self.pid, first.get("start") or proctable.start_of(self.pid), wanted.mark)
        failed = first.get("cwd") or (first.get("errno") == errno.E2BIG and errno.E2BIG)
        if failed:
            self.close()
            raise not_started(failed, wanted)

    def poll(self) -> Exit | None:
        """How it ended; None while it runs."""
        with self._lock:
            while self._exit is None and (more := self._line.read()) is not None:
                self._pending += more
                if not more:
                    self._exit = self._conclude()
            return self._exit

    def steady(self) -> bool:
        """Whether it is alive, and no process of it was stopped or killed half way through something, as the
        kernel has it: no word of the supervisor's, which may be late. Children that exit by themselves are
        ordinary."""
        rows = proctable.tree(self.pid)
        if not rows or rows[0].start != self.group.start or not rows[0].alive or rows[0].exits:
            return False
        return not any(row.killed or row.stopped for row in rows if row.alive)

    def use(self, gpus: Callable[[], Sequence[GPU]], limit: int | None) -> Usage:
        """What its processes use now, of these devices too."""
        return sample(self.pid, gpus(), supervisor=self.supervisor, limit=limit)

    def wait(self, timeout: float | None = None) -> Exit | None:
        """Like poll, after waiting for the end at most `timeout` seconds."""
        deadline = None if timeout is None else time.monotonic() + timeout
        while (found := self.poll()) is None:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                break
            self._line.waits(left)
        return found

    def signal(self, number: int) -> bool:
        """Signal the whole process group; False if it is gone."""
        with self._lock:
            return self._exit is None and self.group.send(number)

    def kill(self) -> Exit | None:
        """Kill every process of the run and wait until none is left, at most some seconds."""
        with self._lock:
            self._line.hang_up()
        if self.wait(PATIENCE) is None:
            self._end_supervisor()
            self.group.end(fresh=True)
            self.wait(1.0)
        return self.poll()

    def close(self) -> None:
        """Kill what may still run and let go of everything."""
        self.kill()
        with self._lock:
            self._line.close()

    def _first_line(self) -> dict[str, Any]:
        while b"\n" not in self._pending:
            if not self._line.waits(LATE):
                self._end_supervisor()
            more = self._line.read()
            if more == b"":
                return {}
            self._pending += more or b""
        line, _, self._pending = self._pending.partition(b"\n")
        return dict(json.loads(line))

    def _end_supervisor(self) -> None:
        known = self._line.supervisor
        with suppress(ProcessLookupError):
            if proctable.is_alive(known.pid, known.start):
                os.kill(known.pid, signal.SIGKILL)

    def _conclude(self) -> Exit:
        """The supervisor is gone: its report, or, if it was killed, an end made here."""
        spec = self._wanted
        report = json.loads(self._pending) if self._pending.endswith(b"\n") else None
        self.gone = report is not None and bool(report["gone"])
        self._line.done(kept=self.gone)
        if report is not None:
            path = spec.env.get("PATH", os.defpath)
            return from_report(report, spec.argv, spec.cwd, path)
        self.group.end(fresh=True)
        return Exit(supervisor_lost=True, seconds=time.monotonic() - self._begun)


def _check(argv: Sequence[str], env: Mapping[str, str]) -> None:
    if not argv:
        raise PrepareError("the command is empty", hint="give `command:` in the file, or a script")
    for text in (*argv, *env, *env.values()):
        if "\0" in text:
            raise PrepareError(f"a zero byte cannot be passed to a process: {text[:80]!r}")


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
