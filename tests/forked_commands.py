"""Commands of hostler as processes of their own that need not import hostler first.

Most of what `hostler plan` costs is imports. So each test process keeps one helper that has imported what
commands use, and forks it for each command: with the command's words, folder, environment and streams, and
nothing of another command. Where a command has a Python of its own or other settings of Python, or is one of
those that work, serve or train themselves, a new process is started as a shell does it; `start` of
cli_world.World always does so.
"""

from __future__ import annotations

import io
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src"
MODULE = [sys.executable, "-m", "hostler"]
APART = ("worker", "train", "drill", "demo", "ui", "mcp")  # known to others by command and environment
OF_PYTHON = ("PYTHON", "LANG", "LC_", "LD_")  # read when Python starts: a fork would not see them
VERBS = {
    "begin": ["init"],
    "run": ["plan", "pricing", "run", "sweep"],
    "look": ["best", "cost", "errors", "logs", "show", "status", "wait"],
    "see": [],
    "steer": ["pause", "resume", "retry", "rm", "stop"],
    "keep": ["archive", "pull"],
    "machines": ["down", "up"],
}  # what the commands of most walks use, and nothing that starts threads
IMPORTED = [
    "hostler.cli.main",
    *(f"hostler.cli.{part}.{verb}" for part, verbs in VERBS.items() for verb in ["verbs", *verbs]),
    "hostler.backends.project_file",
    "hostler.fleet.launcher",
    "hostler.fleet.preview",
    "hostler.fleet.sweep",
    "hostler.spec.parsers.declarations",
    "hostler.store.bucket",
    "hostler.store.folder",
    "hostler.worker.main",
]


class Helper:
    """The process that is forked; it ends with the test process, whose end of the socket closes then."""

    def __init__(self) -> None:
        here, there = socket.socketpair()
        words = [sys.executable, __file__, str(there.fileno())]
        self.env = {k: v for k, v in os.environ.items() if not k.startswith("HOSTLER_")}
        self.env |= {"PYTHONPATH": str(SOURCE)}
        null = subprocess.DEVNULL
        self.process = subprocess.Popen(
            words, env=self.env, pass_fds=[there.fileno()], stdin=null, stdout=null
        )
        there.close()
        self._socket = here
        self._turn = threading.Lock()

    def fork(
        self, words: Sequence[str], cwd: Path, env: Mapping[str, str], streams: Sequence[int]
    ) -> socket.socket:
        """Starts a command; from the socket come its number, then its exit code, each a line."""
        here, there = socket.socketpair()
        given = json.dumps({"words": list(words), "cwd": str(cwd), "env": dict(env)}).encode()
        with there, self._turn:
            socket.send_fds(self._socket, [len(given).to_bytes(4, "big")], [*streams, there.fileno()])
            self._socket.sendall(given)
        return here

    def suits(self, env: Mapping[str, str]) -> bool:
        def of_python(variables: Mapping[str, str]) -> dict[str, str]:
            return {name: value for name, value in variables.items() if name.startswith(OF_PYTHON)}

        return of_python(env) == of_python(self.env)


_helper: dict[int, Helper] = {}  # by number of the test process


def run(
    command: Sequence[str], cwd: Path, env: Mapping[str, str], typed: str | None, timeout: float
) -> subprocess.CompletedProcess[str]:
    """What `subprocess.run` with captured text does."""
    if list(command[:3]) == MODULE and not {*command[3:4]} & {*APART} and hasattr(os, "pidfd_open"):
        if os.getpid() not in _helper:
            _helper[os.getpid()] = Helper()
        helper = _helper[os.getpid()]
        if helper.suits(env):
            return _forked(helper, command, cwd, env, (typed or "").encode(), timeout)
    return subprocess.run(
        command, cwd=cwd, env=env, input=typed, capture_output=True, text=True, timeout=timeout
    )


def _forked(
    helper: Helper, command: Sequence[str], cwd: Path, env: Mapping[str, str], typed: bytes, timeout: float
) -> subprocess.CompletedProcess[str]:
    pipes = [os.pipe() for _ in range(3)]
    theirs = [pipes[0][0], pipes[1][1], pipes[2][1]]
    fate = helper.fork(command[3:], cwd, env, theirs)
    for stream in theirs:
        os.close(stream)
    os.write(pipes[0][1], typed)  # a few words: they fit in the pipe
    os.close(pipes[0][1])
    with fate:
        sources = [pipes[1][0], pipes[2][0], fate.fileno()]
        out, err, told = _read(sources, time.monotonic() + timeout)
        for stream in sources[:2]:
            os.close(stream)
    number, *codes = (int(line) for line in told.split())
    if not codes:
        os.kill(number, signal.SIGKILL)
        raise subprocess.TimeoutExpired(list(command), timeout, out, err)
    return subprocess.CompletedProcess(list(command), codes[0], out.decode(), err.decode())


def _read(sources: Sequence[int], deadline: float) -> list[bytes]:
    """All that comes from each of them until it is closed, or until then."""
    found = dict.fromkeys(sources, b"")
    with selectors.DefaultSelector() as waiting:
        for source in sources:
            waiting.register(source, selectors.EVENT_READ)
        while waiting.get_map() and time.monotonic() < deadline:
            for key, _ in waiting.select(max(0.0, deadline - time.monotonic())):
                data = os.read(key.fd, 1 << 16)
                found[key.fd] += data
                if not data:
                    waiting.unregister(key.fd)
    return [found[source] for source in sources]


# What follows runs in the helper.


def _serve(asked: socket.socket) -> None:
    children: dict[int, tuple[int, socket.socket]] = {}  # descriptor of a process → its number, who waits
    with selectors.DefaultSelector() as waiting:
        waiting.register(asked, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if key.fd in children:
                    waiting.unregister(key.fd)
                    number, fate = children.pop(key.fd)
                    code = os.waitstatus_to_exitcode(os.waitpid(number, 0)[1])
                    os.close(key.fd)
                    with fate:
                        _tell(fate, code)
                    continue
                head, fds, _, _ = socket.recv_fds(asked, 4, 4)
                if not head:
                    return
                given = b""
                while len(given) < int.from_bytes(head, "big"):
                    given += asked.recv(int.from_bytes(head, "big") - len(given))
                number = os.fork()
                if number == 0:
                    waiting.close()
                    asked.close()
                    for _, other in children.values():
                        other.close()
                    _become(json.loads(given), fds)
                fate = socket.socket(fileno=fds[3])
                for stream in fds[:3]:
                    os.close(stream)
                _tell(fate, number)
                process = os.pidfd_open(number)
                children[process] = number, fate
                waiting.register(process, selectors.EVENT_READ)


def _tell(fate: socket.socket, number: int) -> None:
    try:
        fate.sendall(b"%d\n" % number)
    except OSError:  # nobody waits any more
        pass


def _become(given: dict[str, object], fds: Sequence[int]) -> None:
    """This process is a command from now on, as `python -m hostler` begins it."""
    for number, stream in enumerate(fds[:3]):
        os.dup2(stream, number)
        _open_anew(number, ("stdin", "stdout", "stderr")[number])
    for stream in fds:
        os.close(stream)
    os.environ.clear()
    os.environ.update(given["env"])  # type: ignore[arg-type]
    os.chdir(str(given["cwd"]))
    sys.argv[:] = [str(SOURCE / "hostler" / "__main__.py"), *given["words"]]  # type: ignore[misc]
    from hostler.cli.entry import main

    main()


def _open_anew(number: int, name: str) -> None:
    """A stream of Python's as before, though what it leads to is another kind of file."""
    old = getattr(sys, name)
    new = open(number, old.mode, encoding=old.encoding, errors=old.errors, closefd=False)  # noqa: SIM115
    assert isinstance(new, io.TextIOWrapper)
    new.reconfigure(line_buffering=old.line_buffering, write_through=old.write_through)
    setattr(sys, name, new)
    setattr(sys, f"__{name}__", new)


if __name__ == "__main__":
    import gc
    from importlib import import_module

    from hostler.backends.registry import BACKENDS

    del sys.path[0]  # tests
    for name in [*IMPORTED, *(f"{folder}.backend" for folder in BACKENDS.values())]:
        import_module(name)
    dict(sys.modules["hostler.backends.project_file"].kinds())  # the same for every project
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
