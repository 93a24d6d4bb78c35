"""The worker's supervisors: started on demand, lent to one run at a time, kept for the next.

They are forked by the worker's spawner, which is started on first use and again if it was killed. Where
forking is not safe (macOS: its libraries may hold threads of their own) each is started as a program. One
set per worker process, whatever its threads.
"""

from __future__ import annotations

import array
import atexit
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from hostler import env as environment

LATE = 10.0  # seconds after which a spawner that has not forked is given up
KEPT = 16  # idle supervisors
NO_MARK = "0" * 16
ROLES = {
    "spawner": "role=spawner...",
    "warm": "role=warmparent",
    "supervisor": "role=supervisor",
}  # `ps` tells them apart


@dataclass(eq=False)
class Supervisor:
    """A supervisor that serves on this connection; its number is known once it has spoken."""

    connection: socket.socket
    popen: subprocess.Popen[bytes] | None = None  # if it is a child of ours
    pid: int = 0
    start: str = ""

    def send(self, request: Mapping[str, Any], descriptors: Sequence[int]) -> None:
        own = _own_mark()
        marks = {"mark": f"{environment.MARK}={request['mark']}", "no_mark": f"{environment.MARK}={own}"}
        send(self.connection, {**request, **marks}, descriptors)

    def close(self) -> None:
        """It ends with the run it has, or now."""
        self.connection.close()


@dataclass
class Spawner:
    """The process that forks supervisors. All methods may be called from several threads."""

    _lock: threading.RLock = field(default_factory=threading.RLock)
    _popen: subprocess.Popen[bytes] | None = None
    _socket: socket.socket | None = None
    _owner: int = 0

    def fork(self, folder: Path) -> Supervisor:
        """A new supervisor; `folder` is where its text is put if hostler is inside a zip."""
        with self._lock:
            try:
                return self._fork(folder)
            except OSError:  # it was killed, or stopped: another one
                self.close()
                return self._fork(folder)

    def close(self) -> None:
        """End it. Its supervisors go on."""
        with self._lock:
            if self._socket:
                self._socket.close()
            if self._popen and self._owner == os.getpid():
                self._popen.kill()
                self._popen.wait()
            self._popen = self._socket = None

    @property
    def pid(self) -> int:
        """Its number; 0 if there is none now."""
        return self._popen.pid if self._popen else 0

    def _fork(self, folder: Path) -> Supervisor:
        ours, theirs = socket.socketpair()
        try:
            with theirs:
                send(self._running(folder), {"fork": 1}, [theirs.fileno()])
            ours.settimeout(LATE)
            pid, start = line_of(ours).split()
            ours.settimeout(None)
        except OSError:
            ours.close()
            raise
        return Supervisor(ours, None, int(pid), start)

    def _running(self, folder: Path) -> socket.socket:
        if self._socket and self._popen and self._owner == os.getpid() and self._popen.poll() is None:
            return self._socket
        self.close()
        self._begin(folder)
        assert self._socket is not None
        return self._socket

    def _begin(self, folder: Path) -> None:
        command = [python(), "-I", "-S", text(folder, "spawner.py")]
        self._set(*started(command, "spawner", cwd="/", env=marked(environment.bare())))

    def _set(self, connection: socket.socket, popen: subprocess.Popen[bytes]) -> None:
        self._socket, self._popen, self._owner = connection, popen, os.getpid()


@dataclass
class Supervisors:
    """All of this process. All methods may be called from several threads."""

    spawner: Spawner = field(default_factory=Spawner)
    _idle: list[Supervisor] = field(default_factory=list)
    _owner: int = 0

    def lend(self, request: Mapping[str, Any], descriptors: Sequence[int], folder: Path) -> Supervisor:
        """The supervisor that has this request now; OSError if there is none to be had."""
        if self._owner != os.getpid():
            self._idle, self._owner = [], os.getpid()
        while True:
            try:
                known = self._idle.pop()
            except IndexError:
                break
            try:
                known.send(request, descriptors)
                return known
            except OSError:  # it was killed while it was idle
                known.close()
        made = self._new(folder)
        try:
            made.send(request, descriptors)
        except ConnectionError:  # it was killed since, perhaps while this worker slept: another one
            made.close()
            made = self._new(folder)
            with suppress(ConnectionError):  # that too: the report will say that it is lost
                made.send(request, descriptors)
        return made

    def _new(self, folder: Path) -> Supervisor:
        if forks():
            with suppress(ConnectionError, TimeoutError):  # two spawners in a row were killed, or stopped
                return self.spawner.fork(folder)
        return program(python(), folder)

    def give_back(self, one: Supervisor) -> None:
        """Its run is over, and nothing is left of it."""
        if self._owner == os.getpid() and len(self._idle) < KEPT:
            self._idle.append(one)
        else:
            one.close()

    def close(self) -> None:
        while self._idle:
            self._idle.pop().close()
        self.spawner.close()


def program(python: str, folder: Path) -> Supervisor:
    """A supervisor started as a program."""
    command = [python, "-I", "-S", text(folder, "supervisor.py")]
    return Supervisor(*started(command, "supervisor", cwd="/", env=marked(environment.bare())))


def python() -> str:
    """The Python of programs that are the worker's own."""
    return sys.executable


def send(connection: socket.socket, request: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    body = json.dumps(request).encode()
    head = len(body).to_bytes(8, "little")
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    sent = connection.sendmsg([head, body], rights)
    connection.sendall((head + body)[sent:])


def shared() -> Supervisors:
    return _SHARED


def forks() -> bool:
    """Whether supervisors are forked here."""
    return sys.platform.startswith("linux")


def _own_mark() -> str:
    """The mark of the run that this very worker is a part of, if it is; else one that no run has."""
    return environment.mark() or NO_MARK


def marked(env: Mapping[str, str]) -> dict[str, str]:
    """This environment with a mark that a supervisor can change in place."""
    return {**env, environment.MARK: _own_mark()}


def started(
    command: Sequence[str],
    role: str,
    *words: str,
    cwd: str,
    env: Mapping[str, str],
    output: int = subprocess.DEVNULL,
    errors: int | None = None,
) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """A program that is given a socket, and our end of it."""
    ours, theirs = socket.socketpair()
    try:
        popen = subprocess.Popen(
            [*command, str(theirs.fileno()), ROLES[role], *words],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            cwd=cwd,
            env=env,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    except OSError:
        ours.close()
        raise
    finally:
        theirs.close()
    return ours, popen


def line_of(connection: socket.socket) -> str:
    """A line of text, all that has been sent."""
    data = b""
    while not data.endswith(b"\n"):
        piece = connection.recv(4096)
        if not piece:
            raise ConnectionResetError("the spawner is gone")
        data += piece
    return data.decode()


def text(folder: Path, name: str) -> str:
    """A program of this package, its neighbours beside it: on disk also where hostler is inside a zip."""
    here = resources.files("hostler.worker.process")
    if not isinstance(here / name, Path):
        for each in (name, "spawner.py", "supervisor.py", "exit_handlers.py"):
            with (here / each).open("rb") as source, (folder / each).open("wb") as copy:
                shutil.copyfileobj(source, copy)
        return str(folder / name)
    return str(here / name)


_SHARED = Supervisors()
atexit.register(_SHARED.close)
