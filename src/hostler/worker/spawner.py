"""Forks a supervisor for each run that its worker asks for; a fork takes a twentieth of a new Python.

A program of its own (`python -I -S spawner.py SOCKET_FD role=spawner...`) with one thread, so that forking
is safe, and standard library only. Each request is a length, JSON of that length, and three descriptors:
the lifeline's read end, the report's write end, the log. It answers nothing: the report's pipe tells all.
The supervisors are independent of it: killed, it harms no run. It ends when its worker has.
"""

from __future__ import annotations

import array
import ctypes
import gc
import importlib.util
import json
import os
import signal
import socket
import sys

TYPE_CHECKING = False  # as typing's, which takes milliseconds to import
if TYPE_CHECKING:
    from typing import Any

HEAD = 8  # bytes of a request's length
DESCRIPTORS = 3
ROLE = b"role=spawner..."
SUPERVISOR_ROLE = b"role=supervisor"


def main(connection: socket.socket) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # so that ended supervisors are no zombies
    supervisor = _beside("supervisor")
    gc.disable()
    gc.freeze()
    while True:
        request, descriptors = receive(connection)
        if request is None:
            return
        if os.fork() == 0:
            try:
                connection.close()
                _supervise(supervisor, request, descriptors)
            finally:
                os._exit(0)
        for descriptor in descriptors:
            os.close(descriptor)


def receive(connection: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """The next request and its descriptors; None when the worker is gone."""
    room = socket.CMSG_SPACE(DESCRIPTORS * array.array("i").itemsize)
    head, extra, _, _ = connection.recvmsg(HEAD, room)
    descriptors = array.array("i")
    for level, kind, data in extra:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data)
    for descriptor in descriptors:
        os.set_inheritable(descriptor, False)
    head += _exactly(connection, HEAD - len(head))
    size = int.from_bytes(head, "little")
    body = _exactly(connection, size)
    whole = len(head) == HEAD and len(body) == size
    return json.loads(body) if whole and size else None, list(descriptors)


def put_in_place(old: bytes, new: bytes) -> None:
    """Change a word of this process's command line or environment as the kernel shows it to others."""
    try:
        with open("/proc/self/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        first, end = int(fields[45]), int(fields[48])  # from the first argument to the last variable
    except (OSError, IndexError):
        return
    if first and len(new) == len(old):
        at = ctypes.string_at(first, end - first).find(old)
        if at >= 0:
            ctypes.memmove(first + at, new, len(new))


def _exactly(connection: socket.socket, size: int) -> bytes:
    pieces = []
    while size > 0:
        piece = connection.recv(min(size, 1 << 20))
        if not piece:
            break
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _supervise(supervisor: Any, request: dict[str, Any], descriptors: list[int]) -> None:
    """In the fork: become the supervisor that `python supervisor.py` would be."""
    lifeline, report, log = descriptors
    os.setsid()
    for source, target in ((lifeline, 0), (log, 1), (log, 2)):
        os.dup2(source, target)
    os.close(lifeline)
    os.close(log)
    put_in_place(ROLE, SUPERVISOR_ROLE)
    put_in_place(request["no_mark"].encode(), request["mark"].encode())
    try:
        os.chdir(request["cwd"])
    except OSError as error:
        os.write(report, b'{"cwd": %d}\n' % (error.errno or 1))
        return
    supervisor.main(request["folder"], report, request["argv"], request["env"])


def _beside(name: str) -> Any:
    """A program of this folder as a module; the folder itself, full of names, is not on the path."""
    spec = importlib.util.spec_from_file_location(name, os.path.join(os.path.dirname(__file__), f"{name}.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    with socket.socket(fileno=int(sys.argv[1])) as from_worker:
        main(from_worker)
