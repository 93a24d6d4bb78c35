"""Runs one user's process, and outlives neither it nor the worker.

Forked by the spawner, or a program of its own (`python -I -S supervisor.py FOLDER REPORT_FD COMMAND…`), so
it imports nothing of hostler. Standard input is a pipe whose other end the worker holds: at its end the
worker is dead, or wants the run dead, and every process of the run is killed at once. One line of JSON on
REPORT_FD says that the process has started, a second how it ended; both are also left in FOLDER as
process.json and exit.json. The process is not reaped before all others of the run are gone, so its number
cannot come to mean another.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import sys
import time

TYPE_CHECKING = False  # as typing's, which takes milliseconds to import
if TYPE_CHECKING:
    from collections.abc import Mapping

PATIENCE = 5.0  # seconds for killed processes to go
OOM_SCORE = 800  # a run is a likelier victim of the kernel than its worker
SET_PDEATHSIG, SET_CHILD_SUBREAPER = 1, 36
UNSTOPPABLE = {signal.SIGKILL, signal.SIGSTOP}


def main(folder: str, report: int, command: list[str], environ: Mapping[str, str] | None = None) -> None:
    """`environ` is the command's environment; None: this process's own."""
    os.set_inheritable(report, False)
    wake = _prepare_signals()
    _prctl(SET_CHILD_SUBREAPER, 1)
    kills = oom_kills()
    begun = time.monotonic()
    pid, failed = _spawn(command, os.environ if environ is None else environ)
    child = Child(pid)
    errno = int.from_bytes(os.read(failed, 4), "little")
    _tell(folder, "process.json", report, _started(pid, errno))
    _watch(child, wake)
    _end_all(child)
    status, max_rss, cpu = child.reap()
    oom = _was_killed(status) and oom_kills() > kills
    _tell(folder, "exit.json", report, _ended(status, errno, max_rss, cpu, oom, time.monotonic() - begun))


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
        for line in _text(path).splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill":
                return int(value)
    return 0


def _text(path: str) -> str:
    try:
        with open(path, errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def _prepare_signals() -> int:
    """Deaf to what is meant for the run; the returned descriptor becomes readable when a child ends."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)
    wake, poke = os.pipe()
    os.set_blocking(poke, False)
    signal.set_wakeup_fd(poke, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    return wake


def _prctl(option: int, value: int) -> None:
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _spawn(command: list[str], environ: Mapping[str, str]) -> tuple[int, int]:
    """The new process and a descriptor that gives the errno of a failed exec, or its end if all is well."""
    read, write = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            _become(command, environ, parent)
        except OSError as error:
            os.write(write, (error.errno or 1).to_bytes(4, "little"))
        finally:
            os._exit(127)
    os.close(write)
    return pid, read


def _become(command: list[str], environ: Mapping[str, str], parent: int) -> None:
    os.setsid()
    _prctl(SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        return
    _raise_oom_score()
    for number in signal.valid_signals() - UNSTOPPABLE:
        try:
            signal.signal(number, signal.SIG_DFL)
        except (OSError, ValueError):  # a few numbers belong to the C library
            pass
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.execvpe(command[0], command, environ)


def _raise_oom_score() -> None:
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(str(OOM_SCORE))
    except OSError:
        pass


def _watch(child: Child, wake: int) -> None:
    """Until the process has ended or the worker is gone."""
    while not child.ended():
        ready, _, _ = select.select([0, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
        if 0 in ready and not os.read(0, 4096):
            return


def _end_all(child: Child) -> None:
    """Kill what is left of the run, descendants in sessions of their own included."""
    deadline = time.monotonic() + PATIENCE
    while True:
        _kill_group(child)
        left = [] if _is_alone(child) else _descendants(os.getpid())
        for pid in left:
            _kill(pid)
        if (child.ended() and not left) or time.monotonic() > deadline:
            return
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
    """Living processes below `root`, whatever their group; empty where there is no /proc."""
    children: dict[int, list[int]] = {}
    dead = set()
    for name in os.listdir("/proc") if os.path.isdir("/proc/self") else ():
        if name.isdigit():
            fields = _stat(int(name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(name))
                if fields[0] in "ZX":
                    dead.add(int(name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return [pid for pid in found[1:] if pid not in dead]


def _stat(pid: int) -> list[str]:
    """The fields of /proc/PID/stat from the state on: state, parent, group, session…"""
    return _text(f"/proc/{pid}/stat").rpartition(")")[2].split()


def _started(pid: int, errno: int) -> str:
    return (
        f'{{"pid": {pid}, "start": "{_start(pid)}", "errno": {errno}, '
        f'"supervisor": {os.getpid()}, "supervisor_start": "{_start(os.getpid())}"}}'
    )


def _start(pid: int) -> str:
    fields = _stat(pid)
    return fields[19] if fields else ""


def _was_killed(status: int) -> bool:
    """By SIGKILL: itself, or the child of a shell that passed it on as 137."""
    return (os.WIFSIGNALED(status) and os.WTERMSIG(status) == 9) or os.waitstatus_to_exitcode(status) == 137


def _ended(status: int, errno: int, max_rss: int, cpu: float, oom: bool, seconds: float) -> str:
    value = os.waitstatus_to_exitcode(status)
    code, number = (value, "null") if value >= 0 else ("null", -value)
    return (
        f'{{"code": {code}, "signal": {number}, "errno": {errno}, "max_rss": {max_rss}, "cpu": {cpu:.3f}, '
        f'"oom": {"true" if oom else "false"}, "seconds": {seconds:.3f}}}'
    )


def _tell(folder: str, name: str, report: int, line: str) -> None:
    """The pipe is what counts (a full disk must not hide how a run ended); the file is for people."""
    try:
        os.write(report, line.encode() + b"\n")
    except OSError:
        pass
    try:
        path = os.path.join(folder, name)
        with open(path + ".tmp", "w") as file:
            file.write(line + "\n")
        os.replace(path + ".tmp", path)
    except OSError:
        pass


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
    os._exit(0)  # nothing to tidy, and the worker waits
