"""One user's process, as its worker holds it: start, look, signal, kill.

The worker never forks. It starts a supervisor (`supervisor.py`) and holds the write end of the pipe that is
the supervisor's standard input: when that closes, because `kill` closed it or because the worker is dead,
no process of the run is left. All methods may be called from several threads.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

from hostler import env as environment
from hostler import proctable
from hostler.errors import MachineError, PrepareError
from hostler.worker.exit import Exit, from_report
from hostler.worker.group import PATIENCE, Group

__all__ = ["Exit", "Process"]


class Process:
    """A running command, and every process it has started."""

    @classmethod
    def start(
        cls,
        argv: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        folder: Path,
        log: Path,
        python: str = sys.executable,
    ) -> Process:
        """Start a command; what it prints is appended to `log`, its facts are left in `folder`."""
        _check(argv, env)
        mark = secrets.token_hex(8)
        popen, report = _supervise(argv, cwd, {**env, environment.MARK: mark}, folder.absolute(), log, python)
        return cls(popen, report, argv=argv, cwd=cwd, path=env.get("PATH", os.defpath), mark=mark)

    def __init__(
        self,
        popen: subprocess.Popen[bytes],
        report: int,
        *,
        argv: Sequence[str],
        cwd: Path,
        path: str,
        mark: str,
    ) -> None:
        self._popen, self._report = popen, report
        self._argv, self._cwd, self._path = argv, cwd, path
        self._begun = time.monotonic()
        self._lock = threading.RLock()
        self._exit: Exit | None = None
        self._pending = b""
        first = self._first_line()
        self.pid = int(first.get("pid", 0))
        self.supervisor = popen.pid
        self.supervisor_start = first.get("supervisor_start") or proctable.start_of(popen.pid)
        self.group = Group(self.pid, first.get("start") or proctable.start_of(self.pid), mark)

    def poll(self) -> Exit | None:
        """How it ended; None while it runs."""
        with self._lock:
            if self._exit is None and self._popen.poll() is not None:
                self._exit = self._conclude()
            return self._exit

    def steady(self) -> bool:
        """Alive and not stopped half way through something, as the kernel has it: no word of the
        supervisor's, which may be late."""
        found = proctable.row(self.pid)
        return found is not None and found.start == self.group.start and found.state[:1] not in "ZXTt"

    def wait(self, timeout: float | None = None) -> Exit | None:
        """Like poll, after waiting for the end at most `timeout` seconds."""
        try:
            self._popen.wait(timeout)
        except subprocess.TimeoutExpired:
            pass
        return self.poll()

    def signal(self, number: int) -> bool:
        """Signal the whole process group; False if it is gone."""
        with self._lock:
            return self._exit is None and self.group.send(number)

    def kill(self) -> Exit | None:
        """Kill every process of the run and wait until none is left, at most some seconds."""
        self._hang_up()
        if self.wait(PATIENCE) is None:
            self._popen.kill()
            self.group.end(fresh=True)
            self.wait(1.0)
        return self.poll()

    def close(self) -> None:
        """Kill what may still run and let go of everything."""
        self.kill()
        with self._lock:
            if self._report >= 0:
                os.close(self._report)
                self._report = -1

    def _hang_up(self) -> None:
        with self._lock:
            if self._popen.stdin is not None:
                self._popen.stdin.close()

    def _first_line(self) -> dict[str, Any]:
        while b"\n" not in self._pending:
            more = os.read(self._report, 4096)
            if not more:
                return {}
            self._pending += more
        os.set_blocking(self._report, False)
        line, _, self._pending = self._pending.partition(b"\n")
        return dict(json.loads(line))

    def _conclude(self) -> Exit:
        """The supervisor is gone: its report, or, if it was killed, an end made here."""
        self._hang_up()
        try:
            self._pending += os.read(self._report, 65536)
        except BlockingIOError:
            pass
        if self._pending.endswith(b"\n"):
            return from_report(json.loads(self._pending), self._argv, self._cwd, self._path)
        self.group.end(fresh=True)
        return Exit(supervisor_lost=True, seconds=time.monotonic() - self._begun)


def _supervise(
    argv: Sequence[str], cwd: Path, env: Mapping[str, str], folder: Path, log: Path, python: str
) -> tuple[subprocess.Popen[bytes], int]:
    """The supervisor, and the end of its report's pipe that is read here."""
    report, theirs = os.pipe()
    output = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        popen = subprocess.Popen(
            [python, "-I", "-S", _program(folder), str(folder), str(theirs), *argv],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=output,
            cwd=cwd,
            env=env,
            pass_fds=[theirs],
            start_new_session=True,
        )
    except OSError as error:
        os.close(report)
        raise _not_started(error, python, cwd) from error
    finally:
        os.close(theirs)
        os.close(output)
    return popen, report


def _check(argv: Sequence[str], env: Mapping[str, str]) -> None:
    if not argv:
        raise PrepareError("the command is empty", hint="give `command:` in the file, or a script")
    for text in (*argv, *env, *env.values()):
        if "\0" in text:
            raise PrepareError(f"a zero byte cannot be passed to a process: {text[:80]!r}")


def _program(folder: Path) -> str:
    """The supervisor as a file, also where hostler itself is inside a zip."""
    source = resources.files("hostler.worker") / "supervisor.py"
    if isinstance(source, Path):
        return str(source)
    copy = folder / "supervisor.py"
    copy.write_bytes(source.read_bytes())
    return str(copy)


def _not_started(error: OSError, python: str, cwd: Path) -> MachineError | PrepareError:
    if error.errno == errno.E2BIG:
        return PrepareError(
            "command line and environment are longer than this machine allows",
            hint="let the script read its parameters from the JSON file at $HOSTLER_PARAMS",
        )
    if not cwd.is_dir():
        return PrepareError(f"the working folder {cwd} does not exist")
    return MachineError(
        f"{python} could not be started: {error.strerror}", hint="is this Python still installed?"
    )
