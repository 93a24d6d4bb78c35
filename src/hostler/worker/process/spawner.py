"""The spawner forks supervisors for its worker: a fork takes a tenth of a new Python.

A program of its own (`python -I -S spawner.py SOCKET_FD ROLE`) with one thread, so that forking is safe, and
standard library only. Each request is one descriptor, a socket on which the new supervisor serves. The
supervisors are independent of it: killed, it harms no run. It ends when its worker has.
"""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import sys

TYPE_CHECKING = False  # as typing's, which takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any

ROLE, SUPERVISOR_ROLE = b"role=spawner...", b"role=supervisor"


def main(connection: socket.socket, supervisor: Any, role: bytes = ROLE, begin: Any = None) -> None:
    """Fork until the worker is gone. `begin`: what the supervisors' processes do (see there)."""
    for number in supervisor.DEAF:
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that ended supervisors are no zombies
    while True:
        request, descriptors = supervisor.receive(connection)
        if request is None:
            return
        if os.fork() == 0:
            connection.close()
            os.setsid()
            supervisor.rename(role, SUPERVISOR_ROLE)
            supervisor.serve(socket.socket(fileno=descriptors[0]), begin)
            os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)


def beside(name: str) -> Any:
    """A program of this folder as a module; the folder itself, full of names, is not on the path."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(os.path.dirname(__file__), f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    main(socket.socket(fileno=int(sys.argv[1])), beside("supervisor"))
