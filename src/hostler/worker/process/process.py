"""A user's process, as its worker holds it: start, look, signal, kill.

The worker never forks: one of its supervisors (`spawning.py`) does, and the worker holds one end of each of
two pipes (`supervisor_pipes.py`). When `kill` hangs up, or the worker dies, no process of the
run is left. All methods may be called from several threads.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from hostler import env as environment
from hostler import proctable
from hostler.attempt.nvml import GPU
from hostler.attempt.usage import Usage, sample
from hostler.errors import PrepareError
from hostler.worker.process.group import PATIENCE, ProcessGroup
from hostler.worker.process.spawning import Supervisors
from hostler.worker.process.supervisor_pipes import CommandSpec, SupervisorPipes, not_started, open_line
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
