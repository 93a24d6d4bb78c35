"""The supervisor runs a user's process, one at a time, and outlives neither it nor the worker.

Forked by the spawner, or a program of its own (`python -I -S supervisor.py SOCKET_FD ROLE`); it imports
nothing of hostler. Its first word on the socket is its number and start time. Each request there is a
length, JSON of that length, and three descriptors: the lifeline's read end, the report's write end, the
log. At the lifeline's end the worker is dead, or wants the run dead, and every process of the run is killed
at once. One line of JSON on the report says that the process has started, a second how it ended; of a
process that is not over within a moment both are also left in the run's folder, as process.json and
exit.json. The process is not reaped before all others of the run are gone, so its number cannot come to
mean another. It takes the next run only if nothing is left of the one before.
"""

from __future__ import annotations

import array
import ctypes
import gc
import json
import os
import select
import signal
import socket
import sys
import time

TYPE_CHECKING = False  # as typing's, which takes milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    Begin = Callable[[Mapping[str, Any]], Callable[[], None]]

PATIENCE = 5.0  # seconds for killed processes to go
MOMENT = 0.05  # seconds after which files in the run's folder say what runs, and then how it ended
OOM_SCORE = 800  # a run is a likelier victim of the kernel than its worker
SET_PDEATHSIG, SET_CHILD_SUBREAPER = 1, 36
DEAF = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
HEAD = 8  # bytes of a request's length
DESCRIPTORS = 3
CHDIR, EXEC = b"d", b"x"  # what failed before the command began


def serve(connection: socket.socket, begin: Begin | None = None) -> None:
    """Take runs until the worker is gone. `begin` prepares what a new process does; None: it executes the
    command."""
    wake = _prepare_signals()
    changed = [number for number in range(1, signal.NSIG) if _is_changed(number)]
    _prctl(SET_CHILD_SUBREAPER, 1)
    mark = ProcessMark()
    gc.disable()
    connection.sendall(f"{os.getpid()} {_started_at()}\n".encode())
    while True:
        request, descriptors = receive(connection)
        if request is None:
            return
        mark.put(request["mark"])
        ended = _supervise(request, descriptors, wake, changed, (begin or _execution)(request))
        mark.put(request["no_mark"])
        for descriptor in descriptors[:1] + descriptors[2:] + descriptors[1:2]:  # the report's end comes last
            os.close(descriptor)
        if not ended:
            return


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


def _exactly(connection: socket.socket, size: int) -> bytes:
    pieces = []
    while size > 0:
        piece = connection.recv(min(size, 1 << 20))
        if not piece:
            break
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def _supervise(
    request: Mapping[str, Any],
    descriptors: list[int],
    wake: int,
    changed: list[int],
    act: Callable[[], None],
) -> bool:
    """Run a process from its start to its end; whether nothing is left of it."""
    lifeline, report, log = descriptors
    folder = request["folder"]
    kills = oom_kills()
    begun = time.monotonic()
    pid, failed = _spawn(request["cwd"], log, changed, act)
    child = Child(pid)
    said = os.read(failed, 5)
    os.close(failed)
    errno = int.from_bytes(said[1:], "little")
    begins = _started(pid, errno, said[:1] == CHDIR)
    _tell(report, begins)
    lasts = not _watch(child, lifeline, wake, MOMENT)
    if lasts:
        _leave(folder, "process.json", begins)
        _watch(child, lifeline, wake)
    gone = _end_all(child)
    status, max_rss, cpu = child.reap()
    oom = _was_killed(status) and oom_kills() > kills
    ends = _ended(status, errno, max_rss, cpu, oom, time.monotonic() - begun, gone)
    _tell(report, ends)
    if lasts:
        _leave(folder, "exit.json", ends)
    return gone


class ProcessMark:
    """The word in this process's environment, as the kernel shows it, by which strays are found."""

    def __init__(self) -> None:
        fields = stat(os.getpid())
        self._first, self._end = (int(fields[47]), int(fields[48])) if len(fields) > 48 else (0, 0)
        self._at = 0

    def put(self, word: str) -> None:
        name, _, value = word.encode().partition(b"=")
        if 0 < self._first < self._end and not self._at:
            found = (b"\0" + ctypes.string_at(self._first, self._end - self._first)).find(b"\0" + name + b"=")
            self._at = self._first + found + len(name) + 1 if found >= 0 else 0
        if self._at and ctypes.string_at(self._at + len(value), 1) == b"\0":
            ctypes.memmove(self._at, value, len(value))


_renamed: list[int] = []  # where an argument was changed: a fork has it at the same place


def rename(old: bytes, new: bytes) -> None:
    """Change an argument of this process as the kernel shows it."""
    if not _renamed or ctypes.string_at(_renamed[0], len(old)) != old:
        fields = stat(os.getpid())
        first, end = (int(fields[45]), int(fields[46])) if len(fields) > 48 else (0, 0)
        at = ctypes.string_at(first, end - first).find(old) if 0 < first < end else -1
        _renamed[:] = [first + at] if at >= 0 else []
    if _renamed and len(old) == len(new):
        ctypes.memmove(_renamed[0], new, len(new))


class Child:
    """The user's process: asked whether it has ended without being reaped, where the system can do that."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._reaped: tuple[int, int, float] | None = None

    def ended(self) -> bool:
        """Whether it has ended; reaps adopted orphans on the way."""
        if not hasattr(os, "waitid"):
            return self._reaped is not None or self._reap(os.WNOHANG)
        while True:
            found = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if found is None or found.si_pid == self.pid:
                return found is not None
            os.waitpid(found.si_pid, 0)

    def reap(self) -> tuple[int, int, float]:
        """Its wait status, its peak memory in bytes, and the seconds of processor time it took."""
        if self._reaped is None:
            self._reap(0)
        return self._reaped or (0, 0, 0.0)

    def _reap(self, options: int) -> bool:
        pid, status, usage = os.wait4(self.pid, options)
        if pid:
            rss = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024)
            self._reaped = status, rss, usage.ru_utime + usage.ru_stime
        return bool(pid)


def oom_kills() -> int:
    """How often the kernel has killed for memory, in this cgroup and on this machine."""
    total = _counter("/proc/vmstat")
    for line in _text("/proc/self/cgroup").splitlines():
        _, controllers, path = line.split(":", 2)
        if not controllers:
            total += _counter(f"/sys/fs/cgroup{path}/memory.events", "/sys/fs/cgroup/memory.events")
        elif "memory" in controllers.split(","):
            base = "/sys/fs/cgroup/memory"
            total += _counter(f"{base}{path}/memory.oom_control", f"{base}/memory.oom_control")
    return total


def _counter(*paths: str) -> int:
    for path in paths:
        found = _text(path).partition("\noom_kill ")[2]  # never the first line
        if found:
            return int(found.partition("\n")[0])
    return 0


def _text(path: str) -> str:
    """A small file of the kernel's, without the dozen calls of a file object."""
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError:
        return ""
    try:
        return _all(file).decode(errors="replace")
    except OSError:
        return ""
    finally:
        os.close(file)


def _all(file: int) -> bytes:
    data = piece = os.read(file, 1 << 16)
    while piece:
        piece = os.read(file, 1 << 16)
        data += piece
    return data


def _prepare_signals() -> int:
    """Deaf to what is meant for the run; the returned descriptor becomes readable when a child ends."""
    for number in DEAF:
        signal.signal(number, signal.SIG_IGN)
    wake, poke = os.pipe()
    os.set_blocking(poke, False)
    signal.set_wakeup_fd(poke, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    return wake


_libc_prctl = ctypes.CDLL(None).prctl if sys.platform.startswith("linux") else None


def _prctl(option: int, value: int) -> None:
    if _libc_prctl is not None:
        _libc_prctl(option, value, 0, 0, 0)


def _spawn(cwd: str, log: int, changed: list[int], act: Callable[[], None]) -> tuple[int, int]:
    """The new process and a descriptor that gives why it could not begin, or its end if all is well. In the
    new process `act` does not return: it executes a program, or raises what leads out of here."""
    read, write = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        what = CHDIR
        try:
            os.chdir(cwd)
            what = EXEC
            if _become(parent, log, changed):
                act()
        except OSError as error:
            os.write(write, what + (error.errno or 1).to_bytes(4, "little"))
        os._exit(127)
    os.close(write)
    return pid, read


def _is_changed(number: int) -> bool:
    return signal.getsignal(number) not in (signal.SIG_DFL, None)


def _become(parent: int, log: int, changed: list[int]) -> bool:
    """In the fork: a session of its own, the run's descriptors, signals as they are in a new program."""
    os.setsid()
    _prctl(SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return False
    _raise_oom_score()
    gc.enable()
    signal.set_wakeup_fd(-1)
    for number in changed:
        signal.signal(number, signal.SIG_DFL)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(log, 1)
    os.dup2(log, 2)
    return True


def _execution(request: Mapping[str, Any]) -> Callable[[], None]:
    """Execute the command; all that can be is made ready before the fork."""
    environ = {os.fsencode(name): os.fsencode(value) for name, value in request["env"].items()}
    words = [os.fsencode(word) for word in request["argv"]]
    return lambda: os.execvpe(words[0], words, environ)


def _raise_oom_score() -> None:
    try:
        file = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(file, str(OOM_SCORE).encode())
        os.close(file)
    except OSError:
        pass


def _watch(child: Child, lifeline: int, wake: int, seconds: float | None = None) -> bool:
    """Until the process has ended or the worker is gone: True; False if that takes longer than this."""
    while not child.ended():
        ready, _, _ = select.select([lifeline, wake], [], [], seconds)
        if not ready:
            return False
        if wake in ready:
            os.read(wake, 4096)
        if lifeline in ready and not os.read(lifeline, 4096):
            return True
    return True


def _end_all(child: Child) -> bool:
    """Kill what is left of the run, descendants in sessions of their own included; whether all are gone."""
    deadline = time.monotonic() + PATIENCE
    while True:
        _kill_group(child)
        left = [] if _is_alone(child) else _descendants(os.getpid())
        for pid in left:
            _kill(pid)
        gone = child.ended() and not left
        if gone or time.monotonic() > deadline:
            return gone
        time.sleep(0.002)


def _kill_group(child: Child) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):  # not yet a group, or only zombies in it
        if not child.ended():
            _kill(child.pid)


def _kill(pid: int) -> None:
    try:
        os.kill(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        pass


def _is_alone(child: Child) -> bool:
    """Whether the process is all there is below us, and has ended: one small file, not the whole table."""
    me = os.getpid()
    return child.ended() and _text(f"/proc/{me}/task/{me}/children").split() == [str(child.pid)]


def _descendants(root: int) -> list[int]:
    """Living processes below `root`, whatever their group; empty on machines without /proc."""
    children: dict[int, list[int]] = {}
    dead = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            fields = stat(int(name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(name))
                if fields[0] in "ZX":
                    dead.add(int(name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return [pid for pid in found[1:] if pid not in dead]


def stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on: state, parent, group, session…"""
    return _text(f"/proc/{pid}/stat").rpartition(")")[2].split()


def _started(pid: int, errno: int, cwd: bool) -> str:
    return (
        f'{{"pid": {pid}, "start": "{_start(pid)}", "errno": {errno}, "cwd": {errno if cwd else 0}, '
        f'"supervisor": {os.getpid()}, "supervisor_start": "{_started_at()}"}}'
    )


def _start(pid: int) -> str:
    fields = stat(pid)
    return fields[19] if fields else ""


_own_start: dict[int, str] = {}  # number of this process → its start time


def _started_at() -> str:
    """The start time of this process, which does not change."""
    me = os.getpid()
    if me not in _own_start:
        _own_start[me] = _start(me)
    return _own_start[me]


def _was_killed(status: int) -> bool:
    """By SIGKILL: itself, or the child of a shell that passed it on as 137."""
    return (os.WIFSIGNALED(status) and os.WTERMSIG(status) == 9) or os.waitstatus_to_exitcode(status) == 137


def _ended(status: int, errno: int, max_rss: int, cpu: float, oom: bool, seconds: float, gone: bool) -> str:
    value = os.waitstatus_to_exitcode(status)
    code, number = (value, "null") if value >= 0 else ("null", -value)
    return (
        f'{{"code": {code}, "signal": {number}, "errno": {errno}, "max_rss": {max_rss}, "cpu": {cpu:.3f}, '
        f'"oom": {_json(oom)}, "seconds": {seconds:.3f}, "gone": {_json(gone)}}}'
    )


def _json(value: bool) -> str:
    return "true" if value else "false"


def _tell(report: int, line: str) -> None:
    """The pipe is what counts: a full disk must not hide how a run ended."""
    try:
        os.write(report, line.encode() + b"\n")
    except OSError:
        pass


def _leave(folder: str, name: str, line: str) -> None:
    """The file is for people, and for a worker that finds the folder of a dead one."""
    try:
        path = os.path.join(folder, name)
        file = os.open(path + ".tmp", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
        try:
            os.write(file, line.encode() + b"\n")
        finally:
            os.close(file)
        os.replace(path + ".tmp", path)
    except OSError:
        pass


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])))
    os._exit(0)  # nothing to tidy
