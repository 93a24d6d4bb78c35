"""The notice board of a gang's ranks: small notes, shown to all of them at once.

The leader's worker lends it to the processes of the run, for what cannot wait for the store: at which step
all save. Nothing that must outlive them is on it. A line of JSON each way: the secret and the rank first,
then notes; whoever comes gets all that hang there. A rank that hangs up is taken off.
"""

from __future__ import annotations

import hmac
import json
import socket
import struct
import threading
from typing import Any

LONGEST = 1 << 24  # bytes of a note
SLOW = 10.0  # seconds that a rank may take to read what others wrote


class NoticeBoard:
    def __init__(self, at: socket.socket, secret: str) -> None:
        self._at, self._secret = at, secret
        self._notes: dict[str, Any] = {}
        self._guests: list[socket.socket] = []
        self._lock = threading.RLock()
        self.port = int(at.getsockname()[1])
        threading.Thread(target=self._open, name="board", daemon=True).start()

    def close(self) -> None:
        with self._lock:
            for connection in (self._at, *self._guests):
                _shut(connection)
            self._guests = []

    def _open(self) -> None:
        while True:
            try:
                guest, _ = self._at.accept()
            except OSError:  # closed
                return
            threading.Thread(target=self._serve, args=(guest,), name="board-guest", daemon=True).start()

    def _serve(self, guest: socket.socket) -> None:
        name = ""
        try:
            guest.settimeout(SLOW)
            with guest.makefile("rb") as lines:
                hello = _note(lines.readline(LONGEST))
                if not hmac.compare_digest(str(hello.get("secret", "")), self._secret):
                    return
                name = f"rank-{int(hello['rank'])}"
                self._welcome(guest, name)
                guest.settimeout(None)
                guest.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _span(SLOW))
                while line := lines.readline(LONGEST):
                    note = _note(line)
                    self._pin(str(note["name"]), note["value"])
        except (OSError, ValueError, KeyError, TypeError):
            pass  # it hung up, or is none of ours
        finally:
            self._leave(guest, name)

    def _welcome(self, guest: socket.socket, name: str) -> None:
        with self._lock:
            for known, value in self._notes.items():
                guest.sendall(_line(known, value))
            self._guests.append(guest)
            self._pin(name, {})

    def _pin(self, name: str, value: Any) -> None:
        with self._lock:
            if value is None:
                self._notes.pop(name, None)
            else:
                self._notes[name] = value
            for guest in list(self._guests):
                try:
                    guest.sendall(_line(name, value))
                except OSError:  # half a note may be out: it gets no more, and must know
                    self._guests.remove(guest)
                    _hang_up(guest)

    def _leave(self, guest: socket.socket, name: str) -> None:
        with self._lock:
            if guest in self._guests:
                self._guests.remove(guest)
            if name:
                self._pin(name, None)
        _shut(guest)


def _line(name: str, value: Any) -> bytes:
    return json.dumps({"name": name, "value": value}).encode() + b"\n"


def _note(line: bytes) -> dict[str, Any]:
    found = json.loads(line)
    if not isinstance(found, dict):
        raise ValueError("not a note")
    return found


def _span(seconds: float) -> bytes:
    """A struct timeval."""
    return struct.pack("@ll", int(seconds), int(seconds % 1 * 1_000_000))


def _hang_up(one: socket.socket) -> None:
    try:
        one.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def _shut(one: socket.socket) -> None:
    _hang_up(one)
    one.close()
