"""A real sshd on this machine, and wires to it that stall, come late, or break off.

A wire passes bytes of TCP on: what is lost of these is sent again, so a lost packet is a late one, and an
answer is lost for good only where its connection breaks. The sshd has a home of its own; needs root on Linux.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

import servers
from sshhosts import keygen, wait_until

NAME = "storehost"  # of the machine, in the URL of its store
SSHD = """\
ListenAddress 127.0.0.1:{port}
HostKey {home}/hostkey
PidFile none
StrictModes no
UsePAM no
PasswordAuthentication no
KbdInteractiveAuthentication no
UseDNS no
MaxStartups 100:30:200
MaxSessions 100
"""
CLIENT = """\
Host {name}
  HostName 127.0.0.1
  Port {port}
  HostKeyAlias {name}
  UserKnownHostsFile {folder}/known_hosts
  IdentityFile {folder}/id
"""


class StreamFault(Enum):
    HOLD = "nothing passes"
    LATE = "it comes two seconds late"
    AGAIN = "its first packet is lost: it comes when it is sent again"
    BREAK = "the connection ends before it has arrived"


Choose = Callable[[str, str], "StreamFault | None"]


@dataclass
class SshWire:
    """`choose(direction, name)` says what happens to some bytes, `up` to the sshd or `down`; None passes."""

    port: int = 0
    choose: Choose = lambda direction, name: None
    delay: float = 2.0
    bin: Path = Path()  # a folder for PATH whose `ssh` takes this wire
    _ends: list[socket.socket] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"127.0.0.1:{self.port}"

    def carry(self, listener: socket.socket, upstream: int) -> None:
        """Both directions of every connection that comes, until the listener is closed."""
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", upstream))
            except OSError:  # the sshd is not there yet
                near.close()
                continue
            self._ends += [near, far]
            for direction, ends in (("up", (near, far)), ("down", (far, near))):
                threading.Thread(target=self._pass_on, args=(direction, *ends), daemon=True).start()

    def close(self) -> None:
        for end in self._ends:
            _end(end)

    def _pass_on(self, direction: str, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                while (fault := self.choose(direction, NAME)) is StreamFault.HOLD:
                    time.sleep(0.05)
                if fault is StreamFault.BREAK:
                    break
                time.sleep(self._lateness(fault))
                target.sendall(data)
        except OSError:
            pass
        for end in (source, target):
            _end(end)

    def _lateness(self, fault: StreamFault | None) -> float:
        return {StreamFault.LATE: self.delay, StreamFault.AGAIN: random.uniform(0.2, 0.8)}.get(fault, 0.0)  # type: ignore[arg-type]


def _end(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    end.close()


@contextmanager
def ssh_wires(folder: Path, count: int) -> Iterator[list[SshWire]]:
    """So many wires to one sshd, which sees this machine's files, but for its home."""
    with ExitStack() as stack:
        port = stack.enter_context(_sshd(folder))
        wires = [stack.enter_context(_wire(folder, n, port)) for n in range(count)]
        probe = [str(wires[0].bin / "ssh"), "-o", "BatchMode=yes", "-o", "ConnectTimeout=20", NAME, "true"]
        wait_until(lambda: subprocess.run(probe, capture_output=True, timeout=60).returncode == 0)
        yield wires


@contextmanager
def _sshd(folder: Path) -> Iterator[int]:
    program = shutil.which("sshd") or "/usr/sbin/sshd"
    if sys.platform != "linux" or os.geteuid() != 0 or not Path(program).exists():
        servers.missing("an sshd with a home of its own needs root on Linux, and openssh-server")
    home = folder / "home"
    (home / ".ssh").mkdir(parents=True)
    Path("/run/sshd").mkdir(exist_ok=True)
    keygen(home / "hostkey")
    keygen(folder / "id")
    shutil.copy(folder / "id.pub", home / ".ssh/authorized_keys")
    words = (home / "hostkey.pub").read_text().split()[:2]
    (folder / "known_hosts").write_text(f"{NAME} {' '.join(words)}\n")
    [port] = servers.free_ports(1)
    (home / "config").write_text(SSHD.format(port=port, home="/root"))
    begin = f"mount --bind {home} /root && exec {program} -D -e -f /root/config"
    words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--fork", "--kill-child=KILL"]
    with open(folder / "sshd.log", "ab") as log:
        sshd = subprocess.Popen([*words, "sh", "-c", begin], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        yield port
    finally:
        sshd.kill()
        sshd.wait()


@contextmanager
def _wire(folder: Path, number: int, upstream: int) -> Iterator[SshWire]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        wire = SshWire(listener.getsockname()[1], bin=folder / f"wire-{number}")
        wire.bin.mkdir()
        config = wire.bin / "config"
        config.write_text(CLIENT.format(name=NAME, port=wire.port, folder=folder))
        program = wire.bin / "ssh"
        program.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {config} "$@"\n')
        program.chmod(0o755)
        threading.Thread(target=wire.carry, args=(listener, upstream), daemon=True).start()
        try:
            yield wire
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            wire.close()
