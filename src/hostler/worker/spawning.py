"""The worker's end of its spawner: starts it on first use, again if it was killed, and hands requests over.

One per worker process, whatever its threads. Where forking is not safe (macOS: its libraries may hold
threads of their own) there is none, and each supervisor is started as a program.
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
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from hostler import env as environment

ROLE = "role=spawner..."  # its last argument, which a supervisor changes in place: `ps` tells them apart
NO_MARK = "0" * 16
TEXTS = ("spawner.py", "supervisor.py")


@dataclass
class Spawner:
    """A process that forks. All methods may be called from several threads."""

    _lock: threading.RLock = field(default_factory=threading.RLock)
    _popen: subprocess.Popen[bytes] | None = None
    _socket: socket.socket | None = None
    _owner: int = 0
    _mark: str = NO_MARK

    def ask(self, request: Mapping[str, Any], descriptors: Sequence[int], folder: Path) -> None:
        """Have a supervisor forked; `folder` is where its text is put if hostler is inside a zip."""
        with self._lock:
            try:
                self._ask(request, descriptors, folder)
            except OSError:  # it was killed: another one
                self.close()
                self._ask(request, descriptors, folder)

    def close(self) -> None:
        """End it. Runs that it has started go on."""
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

    def _ask(self, request: Mapping[str, Any], descriptors: Sequence[int], folder: Path) -> None:
        connection = self._running(folder)
        marks = {"no_mark": self._mark, "mark": f"{environment.MARK}={request['mark']}"}
        _send(connection, {**request, **marks}, descriptors)

    def _running(self, folder: Path) -> socket.socket:
        if self._socket and self._popen and self._owner == os.getpid() and self._popen.poll() is None:
            return self._socket
        self.close()
        inherited = environment.inherited()
        mark = inherited.get(environment.MARK) or NO_MARK
        self._mark, self._owner = f"{environment.MARK}={mark}", os.getpid()
        ours, theirs = socket.socketpair()
        try:
            self._popen = subprocess.Popen(
                [python(), "-I", "-S", programs(folder, *TEXTS), str(theirs.fileno()), ROLE],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                cwd="/",
                env={**inherited, environment.MARK: mark},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        except OSError:
            ours.close()
            raise
        finally:
            theirs.close()
        self._socket = ours
        return ours


def shared() -> Spawner | None:
    """This process's own; None where supervisors are not forked."""
    return _SHARED if sys.platform.startswith("linux") else None


def python() -> str:
    """The Python of programs that are the worker's own."""
    return sys.executable


def programs(folder: Path, *names: str) -> str:
    """The first of these files of this package, the others beside it: on disk also where hostler itself is
    inside a zip."""
    here = resources.files("hostler.worker")
    first = here / names[0]
    if isinstance(first, Path):
        return str(first)
    for name in names:
        with (here / name).open("rb") as source, (folder / name).open("wb") as copy:
            shutil.copyfileobj(source, copy)
    return str(folder / names[0])


def _send(connection: socket.socket, request: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    body = json.dumps(request).encode()
    head = len(body).to_bytes(8, "little")
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
    sent = connection.sendmsg([head], rights)
    connection.sendall(head[sent:] + body)


_SHARED = Spawner()
atexit.register(_SHARED.close)
