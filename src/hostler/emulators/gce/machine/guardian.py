"""The ground under an emulated machine: every process of it is a descendant of this one.

A program of its own (`python -I -S guardian.py`), importing nothing of hostler. It adopts what its
descendants leave behind, so that none gets away. Requests are lines of JSON on standard input, reports lines
on standard output. At the end of input the emulator is gone, and every process of the machine is killed at
once. SIGUSR1 is a machine that switches itself off.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import sys

SET_PDEATHSIG, SET_CHILD_SUBREAPER = 1, 36
PAUSE = 0.01  # seconds between two rounds of killing


class Guardian:
    def __init__(self) -> None:
        self._names: dict[int, str] = {}
        self._left = b""
        self._emptying = False  # whether to tell when nothing is left
        self._off = False

    def serve(self) -> None:
        wake = _prepare_signals(self._switch_off)
        while True:
            self._reap()
            ready, _, _ = select.select([0, wake], [], [])
            if wake in ready:
                os.read(wake, 4096)
            if self._off:
                self._off = False
                _report({"off": True})
            if 0 in ready and not self._read():
                break
        kill_all()

    def _switch_off(self, *_: object) -> None:
        self._off = True

    def _read(self) -> bool:
        """Do what is asked; False at the end of input."""
        block = os.read(0, 65536)
        *lines, self._left = (self._left + block).split(b"\n")
        for line in lines:
            self._act(json.loads(line))
        return bool(block)

    def _act(self, request: dict[str, object]) -> None:
        what = request["do"]
        if what == "start":
            self._start(request)
        elif what == "signal":
            for pid in self._named(str(request["name"])):
                _send(pid, signal.SIGTERM)
        elif what == "end":
            self._emptying = True
            for pid in descendants(os.getpid()):
                _send(pid, signal.SIGTERM)
                _send(pid, signal.SIGCONT)
        elif what == "kill":
            self._emptying = bool(request["tell"])
            kill_all()

    def _named(self, name: str) -> list[int]:
        return [pid for pid, known in self._names.items() if known == name]

    def _start(self, request: dict[str, object]) -> None:
        pid = os.fork()
        if pid == 0:
            _become(request)
        self._names[pid] = str(request["name"])
        _report({"started": request["name"], "pid": pid})

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                if self._emptying:
                    self._emptying = False
                    _report({"empty": True})
                return
            if pid == 0:
                return
            name = self._names.pop(pid, "")
            if name:
                _report({"ended": name, "code": os.waitstatus_to_exitcode(status)})


def kill_all() -> None:
    """Kill until nothing is left: what is born meanwhile too."""
    while found := descendants(os.getpid()):
        for pid in found:
            _send(pid, signal.SIGKILL)
        select.select([], [], [], PAUSE)
        if _all_dead(found):
            return


def descendants(root: int) -> list[int]:
    """Living ones; zombies hold nothing."""
    children: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        fields = _stat(name) if name.isdigit() else []
        if fields and fields[0] not in ("Z", "X"):
            children.setdefault(int(fields[1]), []).append(int(name))
    pending, found = [root], list[int]()
    while pending:
        for pid in children.get(pending.pop(), []):
            found.append(pid)
            pending.append(pid)
    return found


def _stat(pid: str) -> list[str]:
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()
    except OSError:
        return []


def _all_dead(pids: list[int]) -> bool:
    return not any((_stat(str(pid)) or ["X"])[0] not in ("Z", "X") for pid in pids) and not descendants(
        os.getpid()
    )


def _become(request: dict[str, object]) -> None:
    """In the fork: the process that was asked for, in a session of its own, dying with the guardian."""
    guardian = os.getppid()
    try:
        os.setsid()
        _prctl(SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != guardian:
            os._exit(1)
        for number in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        log = os.open(str(request["log"]), os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.closerange(3, 256)
        os.chdir(str(request["cwd"]))
        words, environ = list(request["argv"]), dict(request["env"])  # type: ignore[call-overload]
        environ["GCE_GUARDIAN"] = str(guardian)
        os.execvpe(words[0], words, environ)
    except OSError as error:
        os.write(2, f"{error}\n".encode())
    os._exit(127)


def _prepare_signals(switch_off: object) -> int:
    """Every signal wakes the loop; those for the emulator's terminal are not for the machine."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    wake, poke = os.pipe()
    os.set_blocking(poke, False)
    signal.set_wakeup_fd(poke, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGUSR1, switch_off)  # type: ignore[arg-type]
    return wake


def _prctl(option: int, value: int) -> None:
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _send(pid: int, number: int) -> None:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass


def _report(what: dict[str, object]) -> None:
    try:
        os.write(1, json.dumps(what).encode() + b"\n")
    except BrokenPipeError:
        pass  # the emulator is gone; the end of input says so too


def main() -> int:
    _prctl(SET_CHILD_SUBREAPER, 1)
    Guardian().serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
