"""Addresses of this machine, ports held until needed, and which nodes of a gang reach each other.

A port that is held answers, so that others can see whether they reach it, until it is hushed: a process that
came early must be refused, and try again, instead of talking to us. It is let go of just before the process
that will use it starts. Linux tells the addresses of all its interfaces; elsewhere the host's name.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import sys
import threading
from collections.abc import Iterable
from pathlib import Path

from hostler import env
from hostler.errors import MachineError

LOOPBACK = "127.0.0.1"
PATIENCE = 3.0  # seconds for an address that may not answer
SIOCGIFADDR = 0x8915


def machine() -> str:
    """Identity of this machine, equal for its processes; containers differ by their network."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return " ".join((env.host(), boot, os.readlink("/proc/self/ns/net"), env.address())).strip()
    except OSError:
        return env.host()


def addresses() -> list[str]:
    """How others may reach this machine: as its platform says (which may be loopback), else by any way that
    there is, the likeliest first."""
    if text := env.address():
        return [text]
    found = [_address_of(name) for _, name in socket.if_nameindex()] if sys.platform == "linux" else []
    try:
        found += [str(row[4][0]) for row in socket.getaddrinfo(env.host(), None, type=socket.SOCK_STREAM)]
    except OSError:
        pass  # a host that does not know its own name
    others = [one for one in [*found, env.host()] if one and not _is_loopback(one)]
    return list(dict.fromkeys(others))


def interface_of(address: str) -> str:
    """The interface of this machine that has this address; '' if nobody can tell."""
    names = [name for _, name in socket.if_nameindex()] if sys.platform == "linux" else []
    return next((name for name in names if _address_of(name) == address), "")


def reached(candidates: Iterable[str], port: int) -> dict[str, str]:
    """Addresses that answer at this port, each with our own on the way there."""
    found: dict[str, str] = {}
    for address in candidates:
        try:
            with socket.create_connection((address, port), timeout=PATIENCE) as line:
                found[address] = str(line.getsockname()[0])
        except OSError:
            continue
    return found


class Ports:
    """Ports of this machine that nobody else gets while they are held."""

    def __init__(self, count: int, allowed: tuple[int, int] | None = None) -> None:
        """`allowed`: the first and the last that may be used; None: any."""
        self._sockets: list[socket.socket] = []
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        try:
            for _ in range(count):
                self._sockets.append(listening(allowed))
        except MachineError:
            self.release()
            raise
        self.numbers = tuple(int(connection.getsockname()[1]) for connection in self._sockets)
        self._thread = threading.Thread(
            target=self._answer, args=(list(self._sockets),), name="ports", daemon=True
        )
        self._thread.start()

    def hush(self) -> None:
        """They are held, and answer nobody any more."""
        self.release()
        for number in self.numbers:
            held = socket.socket()
            self._sockets.append(held)
            try:
                held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                held.bind(("", number))
            except OSError:
                continue  # somebody was quicker: the process will say so

    def release(self) -> None:
        """They are free for who was promised them, when this returns."""
        self._over.set()
        for connection in self._sockets:
            try:
                connection.shutdown(socket.SHUT_RDWR)  # a look that is under way would keep it open
            except OSError:
                pass
            connection.close()
        self._sockets = []
        if self._thread:
            self._thread.join(2 * PATIENCE)

    def _answer(self, held: list[socket.socket]) -> None:
        """Answer callers and let them hang up first: then the port keeps no trace of them."""
        while not self._over.is_set():
            try:
                ready, _, _ = select.select(held, [], [], 0.1)
                for connection in ready:
                    guest, _ = connection.accept()
                    with guest:
                        guest.settimeout(PATIENCE)
                        guest.recv(1)
            except (OSError, ValueError):  # closed here, or hung up there
                continue


def listening(allowed: tuple[int, int] | None = None) -> socket.socket:
    """A socket at a free port; MachineError if there is none among those allowed."""
    for port in range(allowed[0], allowed[1] + 1) if allowed else (0,):
        made = socket.socket()
        try:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            made.bind(("", port))
            made.listen(128)
            return made
        except OSError:
            made.close()
    where = f"from {allowed[0]} to {allowed[1]} " if allowed else ""
    raise MachineError(
        f"no free port {where}on {env.host()}", hint=f"set {env.PORTS}=FIRST-LAST to other ports, or unset it"
    )


def _address_of(interface: str) -> str:
    import fcntl  # not on every system

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            answer = fcntl.ioctl(asked, SIOCGIFADDR, struct.pack("256s", interface[:15].encode()))
        except OSError:  # it has none
            return ""
    return socket.inet_ntoa(answer[20:24])


def _is_loopback(address: str) -> bool:
    return address.startswith(("127.", "fe80:")) or address in ("::1", "localhost")
