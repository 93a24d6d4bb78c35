"""Runs a container: namespaces of its own, the paths as its manifest writes them, one command, its exit code.

A program of its own (`python -I -S launcher.py FD`), importing nothing of hostler. The order is one line of
JSON on standard input; further lines are numbers of signals for the command. Reports are lines of JSON on FD.
At the end of input the cluster is gone and the container is killed. The command is process 1 of its own
process namespace: what it leaves behind dies with it, and a signal that it has no handler for is not
delivered, as in a real container. Nothing of the machine's own folders is changed: the root is built anew
from bind mounts.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import stat
import sys

NEWNS, NEWUTS, NEWIPC, NEWPID = 0x00020000, 0x04000000, 0x08000000, 0x20000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
SET_PDEATHSIG = 1
SHARED_MEMORY = "size=64m"  # what a container has unless a volume is mounted there

libc = ctypes.CDLL(None, use_errno=True)


class Root:
    """A new root: every entry of the machine's, bound; folders that need new entries are built anew."""

    def __init__(self, folder: str) -> None:
        self._stash, self.top = os.path.join(folder, "stash"), os.path.join(folder, "root")
        self._count = 0
        self._made = {self.top}
        for place in (self._stash, self.top):
            os.makedirs(place, exist_ok=True)
            mount("tmpfs", place, "tmpfs", 0, "mode=755")
        self._fill("/", self.top, skip=("proc",))
        os.makedirs(os.path.join(self.top, "proc"))
        mount("proc", os.path.join(self.top, "proc"), "proc", NOSUID | NODEV | NOEXEC)

    def bind(self, source: str, target: str, read_only: bool = False) -> None:
        place = self._place(target, os.path.isdir(source))
        mount(source, place, "", BIND | REC)
        if read_only:
            mount("", place, "", BIND | REMOUNT | RDONLY)

    def memory(self, target: str, options: str) -> None:
        mount("tmpfs", self._place(target, True), "tmpfs", NOSUID | NODEV, options)

    def _place(self, target: str, folder: bool) -> str:
        """Where to mount, made if it is not there."""
        here, parts = self.top, [part for part in target.split("/") if part not in ("", ".")]
        while parts:
            part, *parts = parts
            there = os.path.join(here, part)
            if os.path.islink(there):
                link = os.readlink(there)
                if link.startswith("/"):
                    here = self.top
                parts = [*(word for word in link.split("/") if word not in ("", ".")), *parts]
                continue
            if not os.path.lexists(there):
                self._own(here)
                _create(there, folder or bool(parts))
                if not parts or os.path.isdir(there):
                    self._made.add(there)
            here = there
        return here

    def _own(self, place: str) -> None:
        """Make a folder one in which entries can be made without the machine's noticing."""
        if place in self._made:
            return
        self._count += 1
        aside = os.path.join(self._stash, str(self._count))
        os.makedirs(aside)
        mount(place, aside, "", BIND | REC)
        mode = stat.S_IMODE(os.stat(aside).st_mode)
        mount("tmpfs", place, "tmpfs", 0, f"mode={mode:o}")
        self._made.add(place)
        self._fill(aside, place)

    def _fill(self, source: str, target: str, skip: tuple[str, ...] = ()) -> None:
        for name in os.listdir(source):
            one, other = os.path.join(source, name), os.path.join(target, name)
            if name in skip:
                continue
            if os.path.islink(one):
                os.symlink(os.readlink(one), other)
            elif os.path.exists(one):
                _create(other, os.path.isdir(one))
                mount(one, other, "", BIND | REC)


def _create(path: str, folder: bool) -> None:
    if folder:
        os.makedirs(path)
    else:
        os.close(os.open(path, os.O_CREAT | os.O_WRONLY, 0o644))


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    words = [word.encode() for word in (source or "none", target, kind or "none")]
    if libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), target)


def unshare(flags: int) -> None:
    if libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), "unshare: containers need the rights of root")


def furnish(order: dict[str, object]) -> None:
    mount("", "/", "", REC | PRIVATE)
    root = Root(str(order["folder"]))
    root.memory("/dev/shm", SHARED_MEMORY)
    for one in order["mounts"]:  # type: ignore[attr-defined]
        root.bind(one["source"], one["target"], one.get("read_only", False))
    hostname = str(order["hostname"]).encode()
    libc.sethostname(hostname, len(hostname))
    os.chroot(root.top)
    cwd = str(order["cwd"])
    os.makedirs(cwd, exist_ok=True)
    os.chdir(cwd)


def become(order: dict[str, object], fault: int) -> None:
    """In the fork: the command, dying with its launcher; what keeps it from starting goes to `fault`."""
    argv, environ = list(order["argv"]), dict(order["env"])  # type: ignore[call-overload]
    try:
        libc.prctl(SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        os.setsid()
        furnish(order)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGPIPE):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.execvpe(argv[0], argv, environ)
    except FileNotFoundError as error:
        file = os.fsdecode(error.filename or argv[0])
        known = file == argv[0] or file.endswith(f"/{argv[0]}")
        absent = f'exec: "{argv[0]}": executable file not found in $PATH'
        os.write(fault, (absent if known else str(error)).encode())
    except OSError as error:
        os.write(fault, str(error).encode())
    os._exit(128)


def start(order: dict[str, object]) -> tuple[int, str]:
    """The command's process, and why it did not start."""
    faults, fault = os.pipe()  # closed by the exec
    pid = os.fork()
    if pid == 0:
        become(order, fault)
    os.close(fault)
    with os.fdopen(faults, errors="replace") as heard:
        return pid, heard.read()


def say(report: int, what: dict[str, object]) -> None:
    try:
        os.write(report, json.dumps(what).encode() + b"\n")
    except BrokenPipeError:
        pass  # the cluster is gone; the end of input says so too


def attend(pid: int, wake: int, left: bytes) -> int:
    """Pass signals on until the command has ended; its status."""
    left = pass_on(pid, left)
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        ready, _, _ = select.select([0, wake], [], [])
        if wake in ready:
            os.read(wake, 4096)
        if 0 in ready:
            block = os.read(0, 4096)
            left = pass_on(pid, left + block)
            if not block:
                os.kill(pid, signal.SIGKILL)
                return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def pass_on(pid: int, text: bytes) -> bytes:
    """Signals by their numbers, one in a line; what is left of the last line."""
    *lines, left = text.split(b"\n")
    for line in lines:
        os.kill(pid, int(line))
    return left


def read_order() -> tuple[dict[str, object], bytes]:
    text = b""
    while b"\n" not in text:
        block = os.read(0, 65536)
        if not block:
            sys.exit(1)
        text += block
    line, _, left = text.partition(b"\n")
    return json.loads(line), left


def main() -> int:
    report = int(sys.argv[1])
    os.set_inheritable(report, False)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    wake, poke = os.pipe()
    os.set_blocking(poke, False)
    signal.set_wakeup_fd(poke, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    order, left = read_order()
    try:
        unshare(NEWNS | NEWUTS | NEWIPC | NEWPID)
    except OSError as error:
        say(report, {"error": str(error)})
        return 128
    pid, fault = start(order)
    say(report, {"error": fault} if fault else {"pid": pid})
    code = attend(pid, wake, left)
    say(report, {"code": code if code >= 0 else 128 - code})
    return 0


if __name__ == "__main__":
    sys.exit(main())
